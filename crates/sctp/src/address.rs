//! What addresses are to a host of any protocol.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use smallvec::SmallVec;

/// Addresses of a host, of which most have one.
pub(crate) type Addresses = SmallVec<[IpAddr; 1]>;

/// Whether packets may be exchanged with `address` (RFC 9260 §8.4, rule 1).
pub(crate) fn is_unicast(address: IpAddr) -> bool {
    let broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    !address.is_unspecified() && !address.is_multicast() && !broadcast
}

/// Leading bits that two addresses of one family share; 0 for two families.
pub(crate) fn common_prefix(one: IpAddr, other: IpAddr) -> u32 {
    match (one, other) {
        (IpAddr::V4(one), IpAddr::V4(other)) => (one.to_bits() ^ other.to_bits()).leading_zeros(),
        (IpAddr::V6(one), IpAddr::V6(other)) => (one.to_bits() ^ other.to_bits()).leading_zeros(),
        _ => 0,
    }
}

/// The unspecified address of the family of `address`.
pub(crate) fn unspecified_like(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}
