//! Agents: transport endpoints and applications at a node.

use std::any::Any;
use std::net::IpAddr;

use anabranch_transport::{Ecn, Nanos, Path, Transmit};
use bytes::{Bytes, BytesMut};

use crate::ids::NodeId;

/// An endpoint that the world drives: a transport, its application, and the data that they record.
///
/// The contract is that of [`anabranch_transport::Transport`]: after each of `start`, `stop`,
/// `handle_datagram` and `handle_timeout` the world drains `poll_transmit`, then calls
/// `poll_timeout`. An agent that wraps a transport must drain the transport's events and trace
/// samples before it returns.
pub trait Agent: Any {
    /// Called at the start time of the agent. Before this time the agent receives no datagram, and
    /// no timer runs.
    fn start(&mut self, now: Nanos) {
        let _ = now;
    }

    /// Called at the stop time of the agent, after which its application offers no more data. The
    /// agent stays in the world so that its transport can close as its protocol specifies.
    fn stop(&mut self, now: Nanos) {
        let _ = now;
    }

    /// Handles a datagram (the IP payload) that arrived on `path`, as seen from this node.
    /// `path.local` is the destination address of the packet, and `ecn` the ECN field of its IP
    /// header.
    fn handle_datagram(&mut self, now: Nanos, path: Path, ecn: Ecn, datagram: Bytes);

    /// Handles the timers that are due at `now`.
    fn handle_timeout(&mut self, now: Nanos);

    /// Appends the next packet to `out`, which is empty. If `path.local` is unspecified, the world
    /// chooses the address of the outgoing interface.
    fn poll_transmit(&mut self, now: Nanos, out: &mut BytesMut) -> Option<Transmit>;

    /// The latest time at which [`Agent::handle_timeout`] must be called.
    fn poll_timeout(&self) -> Option<Nanos>;
}

/// Selects the datagrams that are delivered to an agent, by address and ports. The ports are the
/// first two 16-bit words of the payload, as in TCP, UDP and SCTP. If several bindings of a node
/// match, the more specific one wins: ports before address, local port before remote port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding {
    /// Local address; `None`: every address of the node.
    pub address: Option<IpAddr>,
    /// Local port; `None`: every port.
    pub port: Option<u16>,
    /// The peer's port; `None`: every port. It distinguishes connections to the same server port.
    pub remote_port: Option<u16>,
}

impl Binding {
    /// All datagrams to `port`, at any address of the node.
    pub const fn port(port: u16) -> Self {
        Self {
            address: None,
            port: Some(port),
            remote_port: None,
        }
    }

    /// Restricts the binding to the remote port `remote`.
    #[must_use]
    pub const fn from_port(mut self, remote: u16) -> Self {
        self.remote_port = Some(remote);
        self
    }

    /// Restricts the binding to the local `address`.
    #[must_use]
    pub const fn at(mut self, address: IpAddr) -> Self {
        self.address = Some(address);
        self
    }
}

/// Placement of an agent: its node, its bindings, and its start and stop times.
#[derive(Clone, Debug)]
pub struct Attachment {
    /// The node.
    pub node: NodeId,
    /// IP protocol number of the datagrams that the agent sends and receives: 6 TCP, 17 UDP, 132
    /// SCTP.
    pub protocol: u8,
    /// The datagrams that the agent receives; may be empty.
    pub bindings: Vec<Binding>,
    /// Start time of the agent, nanoseconds of simulated time.
    pub start: Nanos,
    /// Time at which the agent's application stops, nanoseconds of simulated time; `None`: never.
    pub stop: Option<Nanos>,
}

impl Attachment {
    /// An agent of `protocol` at `node` that receives on `port` and starts at time 0.
    pub fn new(node: NodeId, protocol: u8, port: u16) -> Self {
        Self {
            node,
            protocol,
            bindings: vec![Binding::port(port)],
            start: 0,
            stop: None,
        }
    }

    /// Sets the start time.
    #[must_use]
    pub fn starting(mut self, start: Nanos) -> Self {
        self.start = start;
        self
    }

    /// Sets the stop time.
    #[must_use]
    pub fn stopping(mut self, stop: Nanos) -> Self {
        self.stop = Some(stop);
        self
    }
}

/// Identifies an agent of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentId(pub(crate) u32);

impl AgentId {
    /// Index in the order of attachment, from 0.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
