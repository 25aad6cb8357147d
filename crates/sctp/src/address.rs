//! Functions on IP addresses: unicast check, common prefix, and the encoding of addresses in
//! cookies; limits on the number of a peer's addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bytes::{Buf, BufMut};
use smallvec::SmallVec;

/// Maximum number of paths of an association; further addresses of a peer are not used.
pub(crate) const MAX_PATHS: usize = 32;

/// Maximum number of stored peer addresses; further addresses are ignored, so that neither a cookie
/// nor an association grows with the list that a peer sends (RFC 5062 §2.1 and §2.3).
pub(crate) const MAX_PEER_ADDRESSES: usize = 8;

/// Addresses of a host. One address, the usual case, needs no allocation.
pub(crate) type Addresses = SmallVec<[IpAddr; 1]>;

/// Whether `address` can be the address of a host: packets from and to all other addresses are
/// discarded (RFC 9260 §8.4, rule 1).
pub(crate) fn is_unicast(address: IpAddr) -> bool {
    let broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    !address.is_unspecified() && !address.is_multicast() && !broadcast
}

/// Length of the common prefix of two addresses in bits; 0 for different families.
pub(crate) fn common_prefix(one: IpAddr, other: IpAddr) -> u32 {
    match (one, other) {
        (IpAddr::V4(one), IpAddr::V4(other)) => (one.to_bits() ^ other.to_bits()).leading_zeros(),
        (IpAddr::V6(one), IpAddr::V6(other)) => (one.to_bits() ^ other.to_bits()).leading_zeros(),
        _ => 0,
    }
}

/// Unspecified address of the same family as `address`.
pub(crate) fn unspecified_like(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

/// Encodes an address for a cookie.
pub(crate) fn put_address(out: &mut impl BufMut, address: IpAddr) {
    match address {
        IpAddr::V4(address) => {
            out.put_u8(4);
            out.put_slice(&address.octets());
        }
        IpAddr::V6(address) => {
            out.put_u8(6);
            out.put_slice(&address.octets());
        }
    }
}

/// Decodes an address encoded by [`put_address`].
pub(crate) fn take_address(body: &mut impl Buf) -> Option<IpAddr> {
    match body.try_get_u8().ok()? {
        4 => Some(Ipv4Addr::from(body.try_get_u32().ok()?).into()),
        6 => Some(Ipv6Addr::from(body.try_get_u128().ok()?).into()),
        _ => None,
    }
}
