//! Observers of an endpoint, for captures and time series.

use std::net::IpAddr;
use std::time::Duration;

use anabranch_sctp::AssociationId;
use anabranch_transport::{Ecn, ProbeSet, Sample};

/// Direction of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the peer.
    Out,
    /// From the peer.
    In,
}

/// A packet that was sent or received.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ObservedPacket<'a> {
    /// Time since the endpoint's sockets were bound.
    pub at: Duration,
    /// Direction.
    pub direction: Direction,
    /// The local address; unspecified if the system selects it.
    pub local: IpAddr,
    /// The peer's address.
    pub remote: IpAddr,
    /// The peer's UDP port; 0 over raw IP.
    pub udp_port: u16,
    /// ECN field of the IP header; `NotEct` if the socket does not report it.
    pub ecn: Ecn,
    /// Common header and chunks.
    pub packet: &'a [u8],
}

/// An observer of an endpoint. It is called from the endpoint's task, under the endpoint's lock: it
/// must not block, nor call the endpoint.
pub trait Observer: Send {
    /// A packet was sent (passed to a socket) or received, even if it was dropped later. A packet
    /// that a shard has received for another is reported by the other.
    fn packet(&mut self, seen: &ObservedPacket<'_>) {
        let _ = seen;
    }

    /// The probes that every association should record.
    fn probes(&self) -> ProbeSet {
        ProbeSet::NONE
    }

    /// A value was recorded.
    fn sample(&mut self, association: AssociationId, sample: Sample) {
        let _ = (association, sample);
    }
}
