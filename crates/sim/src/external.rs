//! External packets: whole IP datagrams of real programs, which enter the world at one node and
//! leave it at another.

use std::collections::VecDeque;

use anabranch_transport::Nanos;
use bytes::Bytes;

use crate::ids::NodeId;

/// A datagram that left the world.
#[derive(Clone, Debug)]
pub struct EgressDatagram {
    /// Time at which the last bit of the datagram arrived at the node, nanoseconds of simulated
    /// time.
    pub at: Nanos,
    /// The node at which the datagram left the world.
    pub node: NodeId,
    /// The datagram, with its current time to live and ECN field.
    pub datagram: Bytes,
}

/// Reason why a datagram is not accepted into the world. The datagram is not counted in the packet
/// counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RejectedDatagram {
    /// Not an IP datagram: wrong version, contradictory lengths, or a time to live of 0.
    #[error("no IP datagram")]
    Malformed,
    /// A datagram that must not be forwarded, because its destination is a multicast, broadcast,
    /// link-local or loopback address or its source is unspecified.
    #[error("to or from an address that no router forwards")]
    Local,
}

/// State of the external interface of a world.
#[derive(Debug, Default)]
pub(crate) struct External {
    /// For each node: whether datagrams that match no agent leave the world.
    pub open: Vec<bool>,
    /// Datagrams that have left the world and that the caller has not fetched yet.
    pub egress: VecDeque<EgressDatagram>,
}
