//! Socket options: numbers, sizes and defaults as Linux has them (RFC 6458 §8), and what a program has set of them.

use std::collections::BTreeMap;

/// SOL_SOCKET.
pub const SOL_SOCKET: i32 = 1;
/// IPPROTO_SCTP, which is SOL_SCTP, too.
pub const IPPROTO_SCTP: i32 = 132;

/// IPPROTO_IPV6.
pub const IPPROTO_IPV6: i32 = 41;
/// IPV6_V6ONLY.
pub const IPV6_V6ONLY: i32 = 26;

/// SO_LINGER.
pub const SO_LINGER: i32 = 13;
/// SO_ERROR.
pub const SO_ERROR: i32 = 4;

/// The most bytes that an option has here.
const MOST: usize = 4096;

/// What an option's value is before a program sets it.
type Default = fn() -> Vec<u8>;

/// An option that is kept as a program sets it.
struct Known {
    number: i32,
    default: Default,
    /// Programs may give so many bytes less: an `int` in place of a struct that begins with an association.
    short: Option<usize>,
}

const fn kept(number: i32, default: Default) -> Known {
    Known {
        number,
        default,
        short: None,
    }
}

/// The same, also as an `int` (Linux takes SCTP_MAXSEG, SCTP_MAX_BURST so).
const fn kept_or_int(number: i32, default: Default) -> Known {
    Known {
        number,
        default,
        short: Some(4),
    }
}

fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|it| it.to_ne_bytes()).collect()
}

fn shorts(values: &[u16]) -> Vec<u8> {
    values.iter().flat_map(|it| it.to_ne_bytes()).collect()
}

/// SCTP_RTOINFO: struct sctp_rtoinfo.
pub const RTOINFO: i32 = 0;
/// SCTP_ASSOCINFO: struct sctp_assocparams.
pub const ASSOCINFO: i32 = 1;
/// SCTP_INITMSG: struct sctp_initmsg.
pub const INITMSG: i32 = 2;
/// SCTP_NODELAY: int. Without effect: this stack never holds small messages back.
pub const NODELAY: i32 = 3;
/// SCTP_DEFAULT_SEND_PARAM: struct sctp_sndrcvinfo.
pub const DEFAULT_SEND_PARAM: i32 = 10;
/// SCTP_EVENTS: struct sctp_event_subscribe, a byte for each kind of notification.
pub const EVENTS: i32 = 11;
/// SCTP_STATUS: struct sctp_status; read only.
pub const STATUS: i32 = 14;
/// SCTP_DELAYED_SACK: struct sctp_sack_info.
pub const DELAYED_SACK: i32 = 16;
/// SCTP_RECVRCVINFO: int.
pub const RECVRCVINFO: i32 = 32;
/// SCTP_REMOTE_UDP_ENCAPS_PORT: struct sctp_udpencaps.
pub const REMOTE_UDP_ENCAPS_PORT: i32 = 36;
/// SCTP_EVENT: struct sctp_event.
pub const EVENT: i32 = 127;

/// Bytes of struct sctp_event_subscribe.
const EVENT_KINDS: usize = 14;

/// Every option that is kept. Numbers and layouts are those of `linux/sctp.h`.
const KNOWN: &[Known] = &[
    kept(RTOINFO, || words(&[0, 3000, 60_000, 1000])),
    kept(ASSOCINFO, || {
        [words(&[0]), shorts(&[10, 0]), words(&[0, 0, 60_000])].concat()
    }),
    kept(INITMSG, || shorts(&[10, 2048, 8, 60_000])),
    kept(NODELAY, || words(&[0])),
    kept(4, || words(&[0])), // AUTOCLOSE
    kept(7, || words(&[0])), // ADAPTATION_LAYER
    kept(8, || words(&[0])), // DISABLE_FRAGMENTS
    kept(DEFAULT_SEND_PARAM, || vec![0; 32]),
    kept(EVENTS, || vec![0; EVENT_KINDS]),
    kept(12, || words(&[1])),           // I_WANT_MAPPED_V4_ADDR
    kept_or_int(13, || words(&[0, 0])), // MAXSEG
    kept(DELAYED_SACK, || words(&[0, 200, 2])),
    kept_or_int(17, || words(&[0, 0])), // CONTEXT
    kept(18, || words(&[0])),           // FRAGMENT_INTERLEAVE
    kept(19, || words(&[0])),           // PARTIAL_DELIVERY_POINT
    kept_or_int(20, || words(&[0, 4])), // MAX_BURST
    kept(RECVRCVINFO, || words(&[0])),
    kept(33, || words(&[0])), // RECVNXTINFO
    kept(REMOTE_UDP_ENCAPS_PORT, || vec![0; 136]),
    kept(37, || words(&[0])), // REUSE_PORT
];

/// What a program has set of a socket.
#[derive(Clone, Debug, Default)]
pub struct Options {
    set: BTreeMap<(i32, i32), Vec<u8>>,
}

impl Options {
    /// `setsockopt`.
    ///
    /// # Errors
    /// An `errno`.
    pub fn set(&mut self, level: i32, option: i32, value: &[u8]) -> Result<(), i32> {
        if value.len() > MOST {
            return Err(libc::EINVAL);
        }
        if [(SOL_SOCKET, SO_LINGER), (IPPROTO_IPV6, IPV6_V6ONLY)].contains(&(level, option)) {
            self.set.insert((level, option), value.to_vec());
            return Ok(());
        }
        match option {
            EVENT => return self.set_event(value),
            // Fewer bytes are those of an older program: what it does not know stays off.
            EVENTS if (1..EVENT_KINDS).contains(&value.len()) => {
                let mut all = vec![0; EVENT_KINDS];
                all[..value.len()].copy_from_slice(value);
                return self.set(level, option, &all);
            }
            _ => (),
        }
        let known = known(level, option)?;
        let size = (known.default)().len();
        let value = match (value.len(), known.short) {
            (given, _) if given >= size => value[..size].to_vec(),
            (given, Some(short)) if given == short => [&[0; 4], value].concat(),
            _ => return Err(libc::EINVAL),
        };
        self.set.insert((level, option), value);
        Ok(())
    }

    /// struct sctp_event: association, kind, whether it is wanted.
    fn set_event(&mut self, value: &[u8]) -> Result<(), i32> {
        let &[_, _, _, _, low, high, on, ..] = value else {
            return Err(libc::EINVAL);
        };
        // SCTP_SN_TYPE_BASE is 1 << 15; kinds have the order of struct sctp_event_subscribe.
        let kind = u16::from_ne_bytes([low, high]).checked_sub(1 << 15);
        let kind = kind.map(usize::from).filter(|&it| it < EVENT_KINDS);
        let kind = kind.ok_or(libc::EINVAL)?;
        let mut all = self.value(IPPROTO_SCTP, EVENTS)?;
        all[kind] = on;
        self.set(IPPROTO_SCTP, EVENTS, &all)
    }

    /// The value of an option that is kept.
    ///
    /// # Errors
    /// An `errno`.
    pub fn value(&self, level: i32, option: i32) -> Result<Vec<u8>, i32> {
        if let Some(value) = self.set.get(&(level, option)) {
            return Ok(value.clone());
        }
        match (level, option) {
            (SOL_SOCKET, SO_LINGER) => return Ok(words(&[0, 0])),
            (IPPROTO_IPV6, IPV6_V6ONLY) => return Ok(words(&[0])),
            _ => (),
        }
        Ok((known(level, option)?.default)())
    }

    /// `getsockopt` with room for `room` bytes.
    ///
    /// # Errors
    /// An `errno`.
    pub fn get(&self, level: i32, option: i32, room: usize) -> Result<Vec<u8>, i32> {
        let mut value = self.value(level, option)?;
        let short = known(level, option).ok().and_then(|it| it.short);
        match short {
            Some(short) if room == short => value = value.split_off(4),
            _ if option == EVENTS && level == IPPROTO_SCTP => value.truncate(room),
            _ if room < value.len() => return Err(libc::EINVAL),
            _ => (),
        }
        Ok(value)
    }

    /// Whether notifications of that kind, by its place in struct sctp_event_subscribe, are wanted.
    pub fn wants(&self, kind: usize) -> bool {
        let events = self.value(IPPROTO_SCTP, EVENTS);
        events.is_ok_and(|it| it.get(kind).is_some_and(|&on| on != 0))
    }

    /// The 32-bit number at byte `at` of an option of SCTP's.
    pub fn word(&self, option: i32, at: usize) -> u32 {
        self.number(option, at, 4)
    }

    /// The 16-bit number at byte `at` of an option of SCTP's.
    pub fn short(&self, option: i32, at: usize) -> u16 {
        self.number(option, at, 2) as u16
    }

    fn number(&self, option: i32, at: usize, bytes: usize) -> u32 {
        let value = self.value(IPPROTO_SCTP, option).unwrap_or_default();
        let part = value.get(at..at + bytes).unwrap_or_default();
        match *part {
            [a, b] => u32::from(u16::from_ne_bytes([a, b])),
            [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]),
            _ => 0,
        }
    }

    /// IPV6_V6ONLY: the socket is not one of IPv4, too.
    pub fn is_v6_only(&self) -> bool {
        let value = self.value(IPPROTO_IPV6, IPV6_V6ONLY);
        value.is_ok_and(|it| it.iter().any(|&byte| byte != 0))
    }

    /// SO_LINGER: how long `close` may take, seconds, if it is on.
    pub fn linger(&self) -> Option<u32> {
        let value = self.set.get(&(SOL_SOCKET, SO_LINGER))?;
        match value[..] {
            [on0, on1, on2, on3, a, b, c, d, ..] if [on0, on1, on2, on3] != [0; 4] => {
                Some(u32::from_ne_bytes([a, b, c, d]))
            }
            _ => None,
        }
    }
}

fn known(level: i32, option: i32) -> Result<&'static Known, i32> {
    let found = KNOWN.iter().find(|it| it.number == option);
    found
        .filter(|_| level == IPPROTO_SCTP)
        .ok_or(libc::ENOPROTOOPT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_read_as_it_was_set() {
        let mut options = Options::default();
        assert_eq!(options.short(INITMSG, 0), 10);
        options
            .set(IPPROTO_SCTP, INITMSG, &shorts(&[5, 6, 7, 8]))
            .unwrap();
        assert_eq!(options.short(INITMSG, 4), 7);
        assert_eq!(
            options.get(IPPROTO_SCTP, INITMSG, 8),
            Ok(shorts(&[5, 6, 7, 8]))
        );
        assert_eq!(options.get(IPPROTO_SCTP, INITMSG, 7), Err(libc::EINVAL));
        assert_eq!(
            options.set(IPPROTO_SCTP, INITMSG, &[0; 7]),
            Err(libc::EINVAL)
        );
        assert_eq!(
            options.set(IPPROTO_SCTP, 9999, &[0; 4]),
            Err(libc::ENOPROTOOPT)
        );
    }

    #[test]
    fn a_limit_is_given_as_a_number_or_with_its_association() {
        let mut options = Options::default();
        options.set(IPPROTO_SCTP, 13, &words(&[1200])).unwrap();
        assert_eq!(options.get(IPPROTO_SCTP, 13, 8), Ok(words(&[0, 1200])));
        options.set(IPPROTO_SCTP, 13, &words(&[3, 900])).unwrap();
        assert_eq!(options.get(IPPROTO_SCTP, 13, 4), Ok(words(&[900])));
    }

    #[test]
    fn notifications_are_wanted_one_by_one_or_together() {
        let mut options = Options::default();
        // struct sctp_event: SCTP_SHUTDOWN_EVENT, on.
        let event = [&0_u32.to_ne_bytes()[..], &0x8005_u16.to_ne_bytes(), &[1, 0]].concat();
        options.set(IPPROTO_SCTP, EVENT, &event).unwrap();
        assert!(options.wants(5) && !options.wants(1));
        options.set(IPPROTO_SCTP, EVENTS, &[1, 1]).unwrap();
        assert!(options.wants(0) && options.wants(1) && !options.wants(5));
        let unknown = [&0_u32.to_ne_bytes()[..], &0x9000_u16.to_ne_bytes(), &[1, 0]].concat();
        assert_eq!(
            options.set(IPPROTO_SCTP, EVENT, &unknown),
            Err(libc::EINVAL)
        );
    }

    #[test]
    fn linger_counts_where_it_is_on() {
        let mut options = Options::default();
        assert_eq!(options.linger(), None);
        options.set(SOL_SOCKET, SO_LINGER, &words(&[1, 0])).unwrap();
        assert_eq!(options.linger(), Some(0));
        options.set(SOL_SOCKET, SO_LINGER, &words(&[0, 5])).unwrap();
        assert_eq!(options.linger(), None);
        // Nothing is kept that nobody asks for: whoever reaches the host could fill it.
        assert_eq!(
            options.set(SOL_SOCKET, 9999, &[0; 4]),
            Err(libc::ENOPROTOOPT)
        );
    }
}
