//! Agents: whatever lives at a node and speaks a transport.

use std::any::Any;
use std::net::IpAddr;

use anabranch_transport::{Ecn, Nanos, Path, Transmit};
use bytes::{Bytes, BytesMut};

use crate::ids::NodeId;

/// An endpoint that the world drives: a transport, its application, and whatever they keep of a run.
///
/// The loop law is that of [`anabranch_transport::Transport`]: after each of `start`, `stop`, `handle_datagram` and
/// `handle_timeout` the world drains `poll_transmit`, then asks `poll_timeout`. A transport wrapped in an agent drains
/// its own events and trace samples before it returns.
pub trait Agent: Any {
    /// The agent's start time has come. Before it, nothing is delivered to the agent and no timer runs.
    fn start(&mut self, now: Nanos) {
        let _ = now;
    }

    /// The agent's stop time has come: its application has no more to offer. The agent stays in the world, so that a
    /// transport may close as its protocol says.
    fn stop(&mut self, now: Nanos) {
        let _ = now;
    }

    /// Takes one datagram (the IP payload) that arrived on `path`, seen from this node: `local` is the destination
    /// address of the packet, and `ecn` the ECN field of its IP header.
    fn handle_datagram(&mut self, now: Nanos, path: Path, ecn: Ecn, datagram: Bytes);

    /// Runs what is due at `now`.
    fn handle_timeout(&mut self, now: Nanos);

    /// Appends the next packet to `out`, which is empty. An unspecified `path.local` lets the world choose the address of the interface that
    /// the packet leaves from.
    fn poll_transmit(&mut self, now: Nanos, out: &mut BytesMut) -> Option<Transmit>;

    /// When [`Agent::handle_timeout`] must be called at the latest.
    fn poll_timeout(&self) -> Option<Nanos>;
}

/// Which datagrams an agent wants. The ports are the first two 16-bit words of the payload, as in TCP, UDP and SCTP.
/// Where several bindings of a node fit, the one that names more wins: ports before address, local port before remote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding {
    /// Local address; `None`: every address of the node.
    pub address: Option<IpAddr>,
    /// Local port; `None`: every port.
    pub port: Option<u16>,
    /// The peer's port; `None`: every port. Tells connections to one server port apart.
    pub remote_port: Option<u16>,
}

impl Binding {
    /// Everything that comes to `port`, at any address of the node.
    pub const fn port(port: u16) -> Self {
        Self {
            address: None,
            port: Some(port),
            remote_port: None,
        }
    }

    /// The same, from `remote` only.
    #[must_use]
    pub const fn from_port(mut self, remote: u16) -> Self {
        self.remote_port = Some(remote);
        self
    }

    /// The same, at `address` only.
    #[must_use]
    pub const fn at(mut self, address: IpAddr) -> Self {
        self.address = Some(address);
        self
    }
}

/// Where and when an agent lives.
#[derive(Clone, Debug)]
pub struct Attachment {
    /// The node.
    pub node: NodeId,
    /// IP protocol number of what the agent sends and receives: 6 TCP, 17 UDP, 132 SCTP.
    pub protocol: u8,
    /// What it receives; may be empty.
    pub bindings: Vec<Binding>,
    /// When it starts.
    pub start: Nanos,
    /// When its application stops; `None`: never.
    pub stop: Option<Nanos>,
}

impl Attachment {
    /// An agent of `protocol` at `node` that receives what comes to `port` and lives from time 0 on.
    pub fn new(node: NodeId, protocol: u8, port: u16) -> Self {
        Self {
            node,
            protocol,
            bindings: vec![Binding::port(port)],
            start: 0,
            stop: None,
        }
    }

    /// Starting at `start`.
    #[must_use]
    pub fn starting(mut self, start: Nanos) -> Self {
        self.start = start;
        self
    }

    /// Stopping at `stop`.
    #[must_use]
    pub fn stopping(mut self, stop: Nanos) -> Self {
        self.stop = Some(stop);
        self
    }
}

/// An agent of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentId(pub(crate) u32);

impl AgentId {
    /// Its place in the order of attachment, counted from 0.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
