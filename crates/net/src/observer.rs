//! A look at what an endpoint does, for captures and series.

use std::net::IpAddr;
use std::time::Duration;

use anabranch_sctp::AssociationId;
use anabranch_transport::{Ecn, ProbeSet, Sample};

/// Which way a packet went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the peer.
    Out,
    /// From the peer.
    In,
}

/// A packet that passed.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ObservedPacket<'a> {
    /// When, since the endpoint's sockets were bound.
    pub at: Duration,
    /// Which way.
    pub direction: Direction,
    /// Our address; unspecified where the system chooses it.
    pub local: IpAddr,
    /// The peer's.
    pub remote: IpAddr,
    /// The peer's UDP port; 0 over raw IP.
    pub udp_port: u16,
    /// ECN field of the IP header; `NotEct` where the socket does not tell.
    pub ecn: Ecn,
    /// Common header and chunks.
    pub packet: &'a [u8],
}

/// Whoever watches an endpoint. It is called from the endpoint's task, under the endpoint's lock: it must not block, nor call the endpoint.
pub trait Observer: Send {
    /// A packet was sent (handed to a socket) or received, whatever became of it. One that a shard has received for another is seen there.
    fn packet(&mut self, seen: &ObservedPacket<'_>) {
        let _ = seen;
    }

    /// What every association is to record.
    fn probes(&self) -> ProbeSet {
        ProbeSet::NONE
    }

    /// A value was recorded.
    fn sample(&mut self, association: AssociationId, sample: Sample) {
        let _ = (association, sample);
    }
}
