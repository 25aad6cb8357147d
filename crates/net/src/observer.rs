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

/// A sent or received packet, as an observer sees it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ObservedPacket<'a> {
    /// Time since the endpoint's sockets were bound.
    pub at: Duration,
    /// Whether the packet was sent or received.
    pub direction: Direction,
    /// The local address; unspecified if the system selects it.
    pub local: IpAddr,
    /// The peer's address.
    pub remote: IpAddr,
    /// The peer's UDP port; 0 over raw IP.
    pub udp_port: u16,
    /// ECN field of the IP header; `NotEct` if the socket does not report it.
    pub ecn: Ecn,
    /// The SCTP packet: common header and chunks.
    pub packet: &'a [u8],
}

/// An observer of packets and samples of an endpoint. Its methods are called under the endpoint's
/// lock: they must neither block nor call the endpoint.
pub trait Observer: Send {
    /// Called for each packet that is sent (passed to a socket) or received, even if the protocol
    /// drops it later. A packet that one shard receives for another is reported by the shard that
    /// has its association.
    fn packet(&mut self, seen: &ObservedPacket<'_>) {
        let _ = seen;
    }

    /// The probes that every association should record; none by default.
    fn probes(&self) -> ProbeSet {
        ProbeSet::NONE
    }

    /// Called for each recorded value of a probe.
    fn sample(&mut self, association: AssociationId, sample: Sample) {
        let _ = (association, sample);
    }
}
