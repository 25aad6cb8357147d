//! Agents and worlds that the tests share.
#![allow(dead_code)] // Each test file uses its own part.

use std::collections::VecDeque;

use anabranch_sim::{
    AddressFamily, Agent, AgentId, Attachment, DirectionConfig, LinkConfig, LinkDirection, LinkId,
    NodeId, Seed, Topology, World,
};
use anabranch_transport::{Ecn, Nanos, Path, Transmit};
use bytes::{BufMut, Bytes, BytesMut};

pub const MS: Nanos = 1_000_000;
pub const SECOND: Nanos = 1_000_000_000;
/// IP protocol number for experiments (RFC 3692).
pub const PROTOCOL: u8 = 253;
pub const PORT: u16 = 7;

/// Agent that sends numbered packets at given times.
pub struct Sender {
    pub path: Path,
    /// Times in nanoseconds and payload sizes (at least 12 bytes), in the order of time.
    pub plan: VecDeque<(Nanos, usize)>,
    pub number: u64,
    /// Whether IP may fragment the packets.
    pub may_fragment: bool,
    pub ecn: Ecn,
}

impl Sender {
    pub fn new(path: Path, plan: impl IntoIterator<Item = (Nanos, usize)>) -> Self {
        Self {
            path,
            plan: plan.into_iter().collect(),
            number: 0,
            may_fragment: false,
            ecn: Ecn::NotEct,
        }
    }
}

impl Agent for Sender {
    fn handle_datagram(&mut self, _now: Nanos, _path: Path, _ecn: Ecn, _datagram: Bytes) {}

    fn handle_timeout(&mut self, _now: Nanos) {}

    fn poll_transmit(&mut self, now: Nanos, out: &mut BytesMut) -> Option<Transmit> {
        let (_, len) = *self.plan.front().filter(|(at, _)| *at <= now)?;
        self.plan.pop_front();
        out.put_u16(PORT);
        out.put_u16(PORT);
        out.put_u64(self.number);
        out.put_bytes(0x5a, len - 12);
        self.number += 1;
        Some(Transmit {
            path: self.path,
            len,
            ecn: self.ecn,
            may_fragment: self.may_fragment,
        })
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        self.plan.front().map(|(at, _)| *at)
    }
}

/// Agent that records arriving packets: time, number, size and path.
#[derive(Default)]
pub struct Sink {
    pub arrivals: Vec<(Nanos, u64)>,
    pub bytes: usize,
    pub paths: Vec<Path>,
    pub damaged: u64,
    /// Numbers of the packets that arrived with CE.
    pub marked: Vec<u64>,
}

impl Agent for Sink {
    fn handle_datagram(&mut self, now: Nanos, path: Path, ecn: Ecn, datagram: Bytes) {
        let mut word = [0; 8];
        word.copy_from_slice(&datagram[4..12]);
        self.arrivals.push((now, u64::from_be_bytes(word)));
        if ecn == Ecn::Ce {
            self.marked.push(u64::from_be_bytes(word));
        }
        self.bytes += datagram.len();
        self.damaged += u64::from(datagram[12..].iter().any(|&byte| byte != 0x5a));
        if self.paths.last() != Some(&path) {
            self.paths.push(path);
        }
    }

    fn handle_timeout(&mut self, _now: Nanos) {}

    fn poll_transmit(&mut self, _now: Nanos, _out: &mut BytesMut) -> Option<Transmit> {
        None
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        None
    }
}

/// A chain of nodes `n0 - n1 - ...` with a link for each of `directions`; the opposite direction is
/// fast and lossless.
pub fn chain(directions: Vec<DirectionConfig>) -> (Topology, Vec<NodeId>, Vec<LinkId>) {
    let mut topology = Topology::new();
    let mut nodes = vec![topology.add_node("n0").unwrap()];
    let mut links = Vec::new();
    for (index, forward) in directions.into_iter().enumerate() {
        let next = topology.add_node(format!("n{}", index + 1)).unwrap();
        let config = LinkConfig {
            name: format!("l{index}"),
            between: [nodes[index], next],
            forward,
            backward: DirectionConfig::instant(0),
        };
        nodes.push(next);
        links.push(topology.add_link(config).unwrap());
    }
    (topology, nodes, links)
}

/// The path between the ends of a chain.
pub fn end_to_end(topology: &Topology, nodes: &[NodeId]) -> Path {
    let address = |node| topology.addresses(node, AddressFamily::V4).next().unwrap();
    Path::new(address(nodes[0]), address(*nodes.last().unwrap()))
}

/// A chain with a sender at its beginning and a sink at its end.
pub struct Line {
    pub world: World,
    pub links: Vec<LinkId>,
    pub nodes: Vec<NodeId>,
    pub sink: AgentId,
}

impl Line {
    pub fn new(
        seed: u64,
        directions: Vec<DirectionConfig>,
        plan: impl IntoIterator<Item = (Nanos, usize)>,
    ) -> Self {
        Self::with_sender(seed, directions, |path| Sender::new(path, plan))
    }

    pub fn with_sender(
        seed: u64,
        directions: Vec<DirectionConfig>,
        sender: impl FnOnce(Path) -> Sender,
    ) -> Self {
        let (topology, nodes, links) = chain(directions);
        let path = end_to_end(&topology, &nodes);
        let mut world = World::new(topology, Seed::new(seed, 0)).unwrap();
        let last = *nodes.last().unwrap();
        let sink = world
            .attach(Attachment::new(last, PROTOCOL, PORT), Sink::default())
            .unwrap();
        let sender = sender(path);
        world
            .attach(Attachment::new(nodes[0], PROTOCOL, PORT), sender)
            .unwrap();
        Self {
            world,
            links,
            nodes,
            sink,
        }
    }

    pub fn run(mut self, end: Nanos) -> Self {
        self.world.run_until(end).unwrap();
        self.world.packet_counts().check().unwrap();
        self
    }

    pub fn sink(&self) -> &Sink {
        self.world.agent(self.sink).unwrap()
    }

    pub fn arrivals(&self) -> &[(Nanos, u64)] {
        &self.sink().arrivals
    }

    /// Numbers of the packets that arrived, in the order of arrival.
    pub fn numbers(&self) -> Vec<u64> {
        self.arrivals().iter().map(|(_, number)| *number).collect()
    }

    pub fn stats(&self, link: usize) -> anabranch_sim::LinkStats {
        let link = self.links[link];
        self.world.link_stats(link, LinkDirection::Forward).unwrap()
    }
}

/// `count` packets of `len` bytes at one time.
pub fn burst(at: Nanos, count: usize, len: usize) -> impl Iterator<Item = (Nanos, usize)> {
    std::iter::repeat_n((at, len), count)
}

/// `count` packets of `len` bytes, one every `interval`.
pub fn every(interval: Nanos, count: u64, len: usize) -> impl Iterator<Item = (Nanos, usize)> {
    (0..count).map(move |i| (i * interval, len))
}
