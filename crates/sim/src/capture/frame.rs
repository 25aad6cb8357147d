//! Packet of a capture: its interface, direction, and the fields of its IP header.

use std::net::IpAddr;

use anabranch_transport::{Ecn, Nanos};

/// Which way a packet passed an interface, in the epb_flags option's terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It was received.
    In = 1,
    /// It was sent.
    Out = 2,
}

/// A packet to be written.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// When it passed, nanoseconds since the beginning of 1970 (or of the simulation).
    pub at: Nanos,
    /// The interface it passed, counted from 0 in the order of their names.
    pub interface: u32,
    /// Which way.
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
    /// What follows the IP header.
    pub payload: &'a [u8],
}
