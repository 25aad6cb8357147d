//! Packets of the outside: whole IP datagrams of real programs, which enter the world at one node and leave it at another.

use std::collections::VecDeque;

use anabranch_transport::Nanos;
use bytes::Bytes;

use crate::ids::NodeId;

/// A datagram that left the world.
#[derive(Clone, Debug)]
pub struct Left {
    /// When its last bit came to the node.
    pub at: Nanos,
    /// The node.
    pub node: NodeId,
    /// The datagram, with the time to live and the ECN field that it has now.
    pub datagram: Bytes,
}

/// A datagram that does not enter the world; it is no part of its ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Stray {
    /// It is no IP datagram: wrong version, lengths that contradict each other, or a time to live of 0.
    #[error("no IP datagram")]
    Malformed,
    /// It stays on the first link: to a multicast, broadcast, link-local or loopback address, or from no address.
    #[error("to or from an address that no router forwards")]
    Local,
}

/// What passes to and from the outside of a world.
#[derive(Debug, Default)]
pub(crate) struct Outside {
    /// Of each node: whether the outside takes what comes there and no agent wants.
    pub open: Vec<bool>,
    /// Datagrams that left, until they are taken.
    pub left: VecDeque<Left>,
}
