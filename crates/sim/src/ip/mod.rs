//! IP: header sizes, protocol numbers, and the encoded headers of packets from outside the world.

mod checksum;
mod header;
mod icmp;

use std::net::IpAddr;

pub(crate) use checksum::{fold, sum};
pub(crate) use header::{Header, has_ports, rewritten};
pub(crate) use icmp::{Complaint, complain};

/// Size of an IPv4 header without options, bytes.
pub const IPV4_HEADER: usize = 20;
/// Size of the fixed IPv6 header, bytes.
pub const IPV6_HEADER: usize = 40;
/// Initial hop limit of a packet: the maximum number of links on its path. It ends routing loops.
pub const HOP_LIMIT: u8 = 64;

/// IP protocol number of TCP.
pub const TCP: u8 = 6;
/// IP protocol number of UDP.
pub const UDP: u8 = 17;
/// IP protocol number of SCTP.
pub const SCTP: u8 = 132;

/// Size of the IP header of packets to `destination`, bytes.
#[inline]
pub fn header_size(destination: IpAddr) -> usize {
    match destination {
        IpAddr::V4(_) => IPV4_HEADER,
        IpAddr::V6(_) => IPV6_HEADER,
    }
}
