//! Destination address selection: the order of RFC 6724 §6, then alternating families (RFC 8305
//! §4).

use std::cmp::Ordering;
use std::net::{IpAddr, Ipv6Addr};

/// Values of link-local, site-local and global scope (RFC 4291 §2.7, RFC 6724 §3.1).
const LINK: u8 = 0x2;
const SITE: u8 = 0x5;
const GLOBAL: u8 = 0xe;

/// The default policy table (RFC 6724 §2.1): prefix, its length, precedence, label; the longest
/// matching prefix applies.
const POLICY: [(Ipv6Addr, u32, u8, u8); 9] = [
    (Ipv6Addr::LOCALHOST, 128, 50, 0),
    (Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96, 35, 4),
    (Ipv6Addr::UNSPECIFIED, 96, 1, 3),
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 32, 5, 5),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, 30, 2),
    (Ipv6Addr::new(0x3ffe, 0, 0, 0, 0, 0, 0, 0), 16, 1, 12),
    (Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10, 1, 11),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, 3, 13),
    (Ipv6Addr::UNSPECIFIED, 0, 40, 1),
];

/// The IPv4-mapped form, in which the policy table lists IPv4 addresses.
fn mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    }
}

/// Length of the common prefix, bits.
fn common_prefix(a: Ipv6Addr, b: Ipv6Addr) -> u32 {
    (a.to_bits() ^ b.to_bits()).leading_zeros()
}

fn precedence_and_label(address: IpAddr) -> (u8, u8) {
    let address = mapped(address);
    let fits = |(prefix, length, ..): &&(Ipv6Addr, u32, u8, u8)| {
        common_prefix(address, *prefix) >= *length
    };
    let row = POLICY.iter().find(fits);
    row.map_or((0, 0), |&(_, _, precedence, label)| (precedence, label))
}

fn scope(address: IpAddr) -> u8 {
    match address {
        // RFC 6724 §3.2.
        IpAddr::V4(v4) if v4.is_loopback() || v4.is_link_local() => LINK,
        IpAddr::V4(_) => GLOBAL,
        IpAddr::V6(v6) if v6.is_loopback() || v6.is_unicast_link_local() => LINK,
        IpAddr::V6(v6) if v6.segments()[0] & 0xffc0 == 0xfec0 => SITE,
        IpAddr::V6(_) => GLOBAL,
    }
}

/// Sort key of a destination by the rules of RFC 6724 §6, given the source address of packets to
/// it; lower is better.
fn rank(destination: IpAddr, source: Option<IpAddr>) -> impl Ord {
    let Some(source) = source else {
        // Rule 1: a destination without a source address is unusable, and comes last.
        return (true, false, false, 0, 0, 0);
    };
    let (precedence, label) = precedence_and_label(destination);
    let other_scope = scope(destination) != scope(source); // rule 2
    let other_label = label != precedence_and_label(source).1; // rule 5
    // Rule 9 (longest common prefix), but not for IPv4, whose prefixes carry no information about
    // the distance.
    let prefix = match (destination, source) {
        (IpAddr::V6(to), IpAddr::V6(from)) => common_prefix(to, from).min(64),
        _ => 0,
    };
    (
        false,
        other_scope,
        other_label,
        u8::MAX - precedence, // rule 6
        scope(destination),   // rule 8
        u32::MAX - prefix,
    )
}

/// Sorts addresses; `source` returns the source address for a destination, or `None` if packets to
/// it cannot be sent. Equal addresses keep their order (rule 10).
pub(super) fn sort(addresses: &mut [IpAddr], source: impl Fn(IpAddr) -> Option<IpAddr>) {
    addresses.sort_by_cached_key(|&address| rank(address, source(address)));
}

/// Alternates the families, starting with that of the first address (RFC 8305 §4, with a First
/// Address Family Count of 1).
pub(super) fn interleave(sorted: &[IpAddr]) -> Vec<IpAddr> {
    let Some(first) = sorted.first() else {
        return Vec::new();
    };
    let of_first = |address: &&IpAddr| address.is_ipv4() == first.is_ipv4();
    let mut leading = sorted.iter().filter(of_first);
    let mut others = sorted.iter().filter(|it| !of_first(it));
    let mut order = Vec::with_capacity(sorted.len());
    while order.len().cmp(&sorted.len()) == Ordering::Less {
        order.extend(leading.next());
        order.extend(others.next());
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(addresses: &[&str], sources: &[(&str, &str)]) -> Vec<String> {
        let address = |text: &str| text.parse::<IpAddr>().expect("an address");
        let mut all: Vec<IpAddr> = addresses.iter().map(|it| address(it)).collect();
        let source = |to: IpAddr| {
            let found = sources.iter().find(|(it, _)| address(it) == to);
            found.map(|(_, source)| address(source))
        };
        sort(&mut all, source);
        all.iter().map(IpAddr::to_string).collect()
    }

    /// The destination sorting examples of RFC 6724 §10.2.
    #[test]
    fn destinations_are_sorted_as_the_rfc_shows() {
        // Prefer matching scope.
        let sources = [
            ("2001:db8:1::1", "2001:db8:1::2"),
            ("198.51.100.121", "169.254.13.78"),
        ];
        let order = sorted(&["198.51.100.121", "2001:db8:1::1"], &sources);
        assert_eq!(order, ["2001:db8:1::1", "198.51.100.121"]);
        let sources = [
            ("2001:db8:1::1", "fe80::1"),
            ("198.51.100.121", "198.51.100.117"),
        ];
        let order = sorted(&["2001:db8:1::1", "198.51.100.121"], &sources);
        assert_eq!(order, ["198.51.100.121", "2001:db8:1::1"]);
        // Prefer higher precedence.
        let sources = [("2001:db8:1::1", "2001:db8:1::2"), ("10.1.2.3", "10.1.2.4")];
        let order = sorted(&["10.1.2.3", "2001:db8:1::1"], &sources);
        assert_eq!(order, ["2001:db8:1::1", "10.1.2.3"]);
        // Prefer smaller scope.
        let sources = [("2001:db8:1::1", "2001:db8:1::2"), ("fe80::1", "fe80::2")];
        let order = sorted(&["2001:db8:1::1", "fe80::1"], &sources);
        assert_eq!(order, ["fe80::1", "2001:db8:1::1"]);
        // Prefer matching label.
        let sources = [
            ("2002:c633:6401::1", "2002:c633:6401::2"),
            ("2001:db8:1::1", "2002:c633:6401::2"),
        ];
        let order = sorted(&["2001:db8:1::1", "2002:c633:6401::1"], &sources);
        assert_eq!(order, ["2002:c633:6401::1", "2001:db8:1::1"]);
    }

    #[test]
    fn unreachable_addresses_are_last_and_equal_ones_keep_their_order() {
        let sources = [("192.0.2.1", "192.0.2.9"), ("192.0.2.2", "192.0.2.9")];
        let order = sorted(&["2001:db8::1", "192.0.2.2", "192.0.2.1"], &sources);
        assert_eq!(order, ["192.0.2.2", "192.0.2.1", "2001:db8::1"]);
    }

    #[test]
    fn families_take_turns() {
        let all = ["::1", "::2", "::3", "10.0.0.1", "10.0.0.2"];
        let all: Vec<IpAddr> = all
            .iter()
            .map(|it| it.parse().expect("an address"))
            .collect();
        let order = interleave(&all);
        let order: Vec<usize> = order
            .iter()
            .map(|it| {
                all.iter()
                    .position(|other| other == it)
                    .expect("one of them")
            })
            .collect();
        assert_eq!(order, [0, 3, 1, 4, 2]);
        assert!(interleave(&[]).is_empty());
    }
}
