//! Socket options at the levels of IPv4 and IPv6. They are stored, so that a program reads back its
//! own values, but have no effect, because the host decides how packets are sent. Numbers, defaults
//! and limits are those of Linux.

use super::{IPPROTO_IP, IPPROTO_IPV6, IPV6_V6ONLY};

/// Allowed values of an option.
#[derive(Clone, Copy)]
enum Range {
    /// On or off.
    Switch,
    /// Only the lowest byte of the value is stored.
    Byte,
    /// From this value to 255; -1 selects the default.
    From(i32),
}

use Range::{Byte, From, Switch};

/// Stored options: level, number, default, range.
const KEPT: &[(i32, i32, i32, Range)] = &[
    (IPPROTO_IP, libc::IP_TOS, 0, Byte),
    (IPPROTO_IP, libc::IP_TTL, 64, From(1)),
    (IPPROTO_IP, libc::IP_PKTINFO, 0, Switch),
    (IPPROTO_IP, libc::IP_RECVERR, 0, Switch),
    (IPPROTO_IP, libc::IP_RECVTTL, 0, Switch),
    (IPPROTO_IP, libc::IP_RECVTOS, 0, Switch),
    (IPPROTO_IP, libc::IP_FREEBIND, 0, Switch),
    (IPPROTO_IP, libc::IP_TRANSPARENT, 0, Switch),
    (IPPROTO_IP, libc::IP_MTU_DISCOVER, 1, From(0)),
    (IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 0, Switch),
    (IPPROTO_IPV6, IPV6_V6ONLY, 0, Switch),
    (IPPROTO_IPV6, libc::IPV6_TCLASS, 0, From(0)),
    (IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS, 64, From(0)),
    (IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 0, Switch),
    (IPPROTO_IPV6, libc::IPV6_RECVERR, 0, Switch),
    (IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 0, Switch),
    (IPPROTO_IPV6, libc::IPV6_RECVHOPLIMIT, 0, Switch),
    (IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, 1, From(0)),
    (IPPROTO_IPV6, libc::IPV6_FREEBIND, 0, Switch),
    (IPPROTO_IPV6, libc::IPV6_TRANSPARENT, 0, Switch),
];

fn kept(level: i32, option: i32) -> Option<(i32, Range)> {
    let mut all = KEPT.iter();
    let found = all.find(|it| (it.0, it.1) == (level, option));
    found.map(|it| (it.2, it.3))
}

/// Whether this module handles options of that level.
pub(super) fn is_ip_level(level: i32) -> bool {
    matches!(level, IPPROTO_IP | IPPROTO_IPV6)
}

/// The value to be stored; `None` for an option that is accepted but not stored, because only the
/// host could apply it.
pub(super) fn given(level: i32, option: i32, value: &[u8]) -> Result<Option<Vec<u8>>, i32> {
    let Some((default, range)) = kept(level, option) else {
        return Ok(None);
    };
    let number = match (value.first_chunk(), value.first()) {
        (Some(bytes), _) => i32::from_ne_bytes(*bytes),
        // IPv4 also accepts a single byte, and an empty value as 0.
        (None, first) if level == IPPROTO_IP => first.copied().unwrap_or_default().into(),
        _ => return Err(libc::EINVAL),
    };
    let number = match range {
        Switch => i32::from(number != 0),
        Byte => number & 0xff,
        From(_) if number == -1 => default,
        From(least) if (least..=255).contains(&number) => number,
        From(_) => return Err(libc::EINVAL),
    };
    Ok(Some(number.to_ne_bytes().to_vec()))
}

/// Default value of a stored option. Other options fail with ENOPROTOOPT.
pub(super) fn default(level: i32, option: i32) -> Result<Vec<u8>, i32> {
    let (default, _) = kept(level, option).ok_or(libc::ENOPROTOOPT)?;
    Ok(default.to_ne_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ip_options_are_limited_to_their_range() {
        let int = |it: i32| it.to_ne_bytes().to_vec();
        let tos = |value: &[u8]| given(IPPROTO_IP, libc::IP_TOS, value);
        assert_eq!(tos(&int(0x1b8)), Ok(Some(int(0xb8))));
        assert_eq!(tos(&[0x10]), Ok(Some(int(0x10))));
        assert_eq!(tos(&[]), Ok(Some(int(0))));
        let ttl = |value: i32| given(IPPROTO_IP, libc::IP_TTL, &int(value));
        assert_eq!(ttl(0), Err(libc::EINVAL));
        assert_eq!(ttl(256), Err(libc::EINVAL));
        assert_eq!(ttl(-1), Ok(Some(int(64))));
        let only = |value: &[u8]| given(IPPROTO_IPV6, IPV6_V6ONLY, value);
        assert_eq!(only(&int(5)), Ok(Some(int(1))));
        assert_eq!(only(&[1]), Err(libc::EINVAL));
        // Values of unknown options are not stored.
        assert_eq!(given(IPPROTO_IP, 9999, &int(1)), Ok(None));
        assert_eq!(default(IPPROTO_IP, 9999), Err(libc::ENOPROTOOPT));
    }
}
