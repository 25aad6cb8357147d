//! Fields of a captured packet: interface, direction, and IP header.

use std::net::IpAddr;

use anabranch_transport::{Ecn, Nanos};

/// Direction in which a packet passed an interface, as in the epb_flags option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Received.
    In = 1,
    /// Sent.
    Out = 2,
}

/// A packet to be written to a capture file.
#[derive(Clone, Copy, Debug)]
pub struct CapturedPacket<'a> {
    /// Time at which the packet passed the interface: nanoseconds since 1970, or since the start of
    /// the simulation.
    pub at: Nanos,
    /// Index of the interface in the list of the file's interface names, from 0.
    pub interface: u32,
    /// Direction.
    pub way: Way,
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// IP protocol number.
    pub protocol: u8,
    /// Identification of an IPv4 header.
    pub id: u16,
    /// ECN field.
    pub ecn: Ecn,
    /// Time to live, or hop limit.
    pub hops_left: u8,
    /// Payload of the IP packet.
    pub payload: &'a [u8],
}
