//! The network below the agents: simplex links, routes, observers, and the scheduler shared with
//! the agents.

mod division;
mod external;
mod wireless;

use std::collections::VecDeque;
use std::net::IpAddr;

use anabranch_transport::{Nanos, Path};

use crate::capture::Capture;
use crate::error::BuildError;
use crate::external::External;
use crate::ids::{AddressFamily, LinkDirection, LinkId, NodeId, opposite};
use crate::ip::header_size;
use crate::link::{Cell, SimplexLink};
use crate::packet::{
    DropCounts, DropReason, NO_RECEIVER, Packet, Parcel, Parcels, receiving_interface,
};
use crate::packet_counts::{PacketCounts, WorkCounts};
use crate::packet_tap::PacketTap;
use crate::probe::{Recorder, SimplexLinkProbes};
use crate::rng::Seed;
use crate::router::{GROUND, HERE, Hop, Router, Sender};
use crate::scheduler::Scheduler;
use crate::topology::{Topology, simplex_link};
use division::Division;

/// Route of the packets on one path from a node: source address, outgoing interface, and header
/// size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departure {
    pub source: IpAddr,
    /// Index of the routing table for the destination.
    pub target: u32,
    /// Index of the sending interface.
    pub via: u32,
    /// Index of the receiving interface, on a ground link.
    pub receiver: u32,
    /// Size of the IP header, bytes.
    pub header: u32,
}

/// Simplex links, routes and observers of a world.
pub(crate) struct Network {
    pub topology: Topology,
    router: Router,
    pub simplex_links: Vec<SimplexLink>,
    /// Wireless media, each shared by several simplex links.
    cells: Vec<Cell>,
    /// Packets that left a medium and have not yet been processed at the receiving interface.
    arrived: VecDeque<(u32, Parcel)>,
    /// Event sources: the simplex links first, then the media, then the agents.
    pub scheduler: Scheduler,
    pub sent: u64,
    pub delivered: u64,
    /// Packets that reached the end of a link that is not a delay line.
    hops: u64,
    /// Packets that reached the end of a delay line that has since been converted.
    unfolded: u64,
    /// Events of media and of links that are not delay lines. One entry of the scheduler may
    /// represent several of these sources, and some sources have no entry.
    pub instants: u64,
    /// Whether the world runs many events before the caller can read its state. A medium may then
    /// be left unprocessed until the outcome of a packet is due.
    pub at_length: bool,
    pub parcels: Parcels,
    /// Drops at nodes; each link counts its own drops.
    dropped: DropCounts,
    pub captures: Vec<Capture>,
    pub recorder: Option<Box<dyn Recorder>>,
    /// Whether any simplex link has probes.
    probing: bool,
    pub tap: Option<Box<dyn PacketTap>>,
    /// Agents that receive the packets that pass through their nodes: node, protocol, agent.
    pub transits: Vec<(NodeId, u8, u32)>,
    /// The external interface of the world.
    pub external: External,
    /// State of the part, if the world is divided.
    division: Option<Box<Division>>,
}

impl Network {
    pub fn new(mut topology: Topology, seed: Seed) -> Result<Self, BuildError> {
        let mut router = Router::new(&topology);
        router.follow(&topology, 0);
        let cells = wireless::cells(&topology, seed)?;
        let mut simplex_links = Vec::with_capacity(topology.links.len() * 2);
        let ids = topology.links();
        for id in ids {
            if let Some(wireless) = wireless::simplex_links(&topology, id) {
                simplex_links.extend(wireless);
                continue;
            }
            let link = &mut topology.links[id.index()];
            // Moves the configurations into the simplex links; the topology keeps the names and
            // ends of links.
            for direction in LinkDirection::BOTH {
                let config = match direction {
                    LinkDirection::Forward => &mut link.forward,
                    LinkDirection::Backward => &mut link.backward,
                };
                let config = std::mem::replace(config, crate::DirectionConfig::instant(0));
                let name = format!("link {} {}", link.name, direction.name());
                let to = opposite(simplex_link(id, direction) as u32);
                let node = link.between[1 - direction as usize];
                simplex_links.push(SimplexLink::wire(
                    config,
                    &link.name,
                    &name,
                    (to, node),
                    seed,
                )?);
            }
        }
        Ok(Self {
            scheduler: Scheduler::new(simplex_links.len() + cells.len()),
            topology,
            router,
            simplex_links,
            cells,
            arrived: VecDeque::new(),
            sent: 0,
            delivered: 0,
            hops: 0,
            unfolded: 0,
            instants: 0,
            at_length: false,
            parcels: Parcels::default(),
            dropped: DropCounts::default(),
            captures: Vec::new(),
            recorder: None,
            probing: false,
            tap: None,
            transits: Vec::new(),
            external: External::default(),
            division: None,
        })
    }

    /// Number of event sources that are not agents; agents are numbered after them.
    #[inline]
    pub fn sources(&self) -> usize {
        self.simplex_links.len() + self.cells.len()
    }

    /// Time of the next change of routes, nanoseconds.
    #[inline]
    pub fn next_route_change(&self) -> Nanos {
        self.router.next_change()
    }

    /// Updates the routes to `now`. Returns whether resolved routes may have changed.
    pub fn follow_routes(&mut self, now: Nanos) -> bool {
        self.router.follow(&self.topology, now)
    }

    /// Route of packets on `path` from `node`; `None` if there is no route.
    pub fn departure(&mut self, node: NodeId, path: Path) -> Option<Departure> {
        let target = self.topology.owner(path.remote)?;
        let target = self.router.table(&self.topology, target);
        let hop = self
            .router
            .first_hop(&self.topology, node, path.local, target)?;
        let Sender {
            interface: via,
            receiver,
        } = self.router.sender(hop);
        let source = if path.local.is_unspecified() {
            let family = match path.remote {
                IpAddr::V4(_) => AddressFamily::V4,
                IpAddr::V6(_) => AddressFamily::V6,
            };
            self.topology.interfaces()[via as usize].address(family)
        } else {
            path.local
        };
        let one_family = source.is_ipv4() == path.remote.is_ipv4();
        one_family.then_some(Departure {
            source,
            target,
            via,
            receiver,
            header: header_size(path.remote) as u32,
        })
    }

    /// Passes `packet` to the interface `via` for sending.
    #[inline(never)]
    pub fn offer(&mut self, now: Nanos, via: u32, packet: Parcel) {
        let size = packet.wire_size();
        self.offer_sized(now, via, packet, size);
    }

    /// Like [`Self::offer`], for a packet of known size on the wire.
    #[inline(always)] // Called by agents and routers: the fast path of wires.
    pub fn offer_sized(&mut self, now: Nanos, via: u32, packet: Parcel, size: usize) {
        debug_assert_eq!(size, packet.wire_size());
        let Some(SimplexLink::DelayLine(wire)) = self.simplex_links.get_mut(via as usize) else {
            return self.offer_otherwise(now, via, packet);
        };
        match wire.offer(now, packet, size) {
            Ok(None) => {}
            Ok(Some(next)) => self.scheduler.begin(next),
            Err(packet) => self.reuse(packet),
        }
    }

    /// Keeps the allocation of a dropped packet for reuse.
    #[inline(never)]
    fn reuse(&mut self, packet: Parcel) {
        drop(self.parcels.unwrap(packet));
    }

    /// Like [`Self::offer`], for links that are not delay lines.
    #[inline(never)]
    fn offer_otherwise(&mut self, now: Nanos, via: u32, packet: Parcel) {
        if packet.header != 0 {
            self.check_size(now, via, &packet);
        }
        if let SimplexLink::Wireless(_) = self.simplex_links[via as usize] {
            return self.offer_to_medium(now, via, packet);
        }
        if packet.receiver != NO_RECEIVER && self.is_turning(now, via, packet.receiver) {
            let node = self.topology.interfaces()[via as usize].node;
            return self.give_up(now, node, &packet, DropReason::LinkDown);
        }
        let captured = self.copy_if_captured(via, &packet);
        let simplex_link = &mut self.simplex_links[via as usize];
        let offered = simplex_link.offer(now, packet);
        if offered.next_changed {
            self.scheduler.set(via as usize, simplex_link.next());
        }
        if let (Some(packet), Some(at)) = (captured, offered.transmission) {
            for capture in &mut self.captures {
                capture.sends(now, at, via, packet.clone());
            }
        }
        if !self.captures.is_empty() {
            self.tell_captures(now, via as usize);
        }
        self.tell(via as usize);
    }

    #[inline]
    fn copy_if_captured(&self, via: u32, packet: &Packet) -> Option<Packet> {
        let captured = !self.captures.is_empty() && self.captures.iter().any(|c| c.taps(via));
        captured.then(|| packet.clone())
    }

    /// Starts a capture.
    pub fn add_capture(&mut self, now: Nanos, capture: Capture) {
        for interface in 0..self.simplex_links.len() {
            if capture.taps(interface as u32) {
                // Both directions are converted, because the capture records outgoing and incoming
                // packets.
                self.unfold(now, opposite(interface as u32) as usize);
                self.unfold(now, interface);
                self.simplex_links[interface].tap();
            }
        }
        self.captures.push(capture);
    }

    /// Passes the packets whose transmission a simplex link has begun to the captures.
    #[cold]
    fn tell_captures(&mut self, now: Nanos, index: usize) {
        while let Some((at, packet)) = self.simplex_links[index].poll_begun() {
            for capture in &mut self.captures {
                capture.sends(now, at, index as u32, packet.clone());
            }
        }
    }

    /// Converts a delay line to the general type, because it is observed from now on.
    pub fn unfold(&mut self, now: Nanos, index: usize) {
        if let SimplexLink::DelayLine(wire) = &self.simplex_links[index] {
            self.unfolded += wire.arrived();
            let simplex_link = self.simplex_links.swap_remove(index).unfold(now);
            self.scheduler.unsettle(index, simplex_link.next());
            self.simplex_links.push(simplex_link);
            let last = self.simplex_links.len() - 1;
            self.simplex_links.swap(index, last);
        }
    }

    /// Runs the next event of a simplex link. Returns the packet and its node, if a packet reached
    /// its destination.
    #[inline(always)] // Called once, in the event loop.
    pub fn step_simplex_link(&mut self, now: Nanos, index: usize) -> Option<(NodeId, Parcel)> {
        let SimplexLink::DelayLine(wire) = &mut self.simplex_links[index] else {
            return self.step_simplex_link_otherwise(now, index);
        };
        let (node, packet, size, next) = wire.arrive();
        self.scheduler.follow(next);
        self.forward(now, node, packet?, size)
    }

    /// Like [`Self::step_simplex_link`], for a simplex link that is not a delay line.
    #[inline(never)]
    fn step_simplex_link_otherwise(
        &mut self,
        now: Nanos,
        index: usize,
    ) -> Option<(NodeId, Parcel)> {
        if let Some((interface, packet)) = self.step_arriving(index) {
            return self.receive(now, interface, packet);
        }
        self.instants += 1;
        let simplex_link = &mut self.simplex_links[index];
        let arrived = simplex_link.step(now);
        self.scheduler.set(index, simplex_link.next());
        if !self.captures.is_empty() {
            self.tell_captures(now, index);
        }
        self.tell(index);
        let (interface, packet) = arrived?;
        self.arrive(now, interface, packet)
    }

    /// Processes a packet that arrived at an interface. Returns the packet and its node, if this
    /// node is the packet's destination.
    #[inline(never)]
    pub fn arrive(
        &mut self,
        now: Nanos,
        interface: u32,
        mut packet: Parcel,
    ) -> Option<(NodeId, Parcel)> {
        let receiver = std::mem::replace(&mut packet.receiver, NO_RECEIVER);
        let interface = receiving_interface(receiver, interface);
        self.hops += 1;
        if !self.is_own(interface) {
            // The receiver belongs to another part of the world, which has a copy of the packet.
            self.reuse(packet);
            return None;
        }
        self.receive(now, interface, packet)
    }

    fn receive(&mut self, now: Nanos, interface: u32, packet: Parcel) -> Option<(NodeId, Parcel)> {
        for capture in &mut self.captures {
            capture.receives(now, interface, &packet);
        }
        let node = self.topology.interfaces()[interface as usize].node;
        let size = packet.wire_size();
        self.forward(now, node, packet, size)
    }

    #[inline(always)]
    fn forward(
        &mut self,
        now: Nanos,
        node: NodeId,
        mut packet: Parcel,
        size: usize,
    ) -> Option<(NodeId, Parcel)> {
        let left = packet.hops_left - 1;
        packet.hops_left = left;
        let next = self.router.next(node, packet.target);
        if next == HERE {
            return Some((node, packet));
        }
        if left == 0 || next >= GROUND || !self.transits.is_empty() {
            return self.forward_otherwise(now, node, packet);
        }
        self.offer_sized(now, next, packet, size);
        None
    }

    /// Forwards a packet in all cases that the fast path does not cover.
    #[inline(never)]
    fn forward_otherwise(
        &mut self,
        now: Nanos,
        node: NodeId,
        mut packet: Parcel,
    ) -> Option<(NodeId, Parcel)> {
        match self.router.hop(node, packet.target) {
            Hop::Here => return Some((node, packet)),
            Hop::Via(_) if self.transit(node, packet.protocol).is_some() => {
                return Some((node, packet));
            }
            Hop::Nowhere => self.give_up(now, node, &packet, DropReason::NoRoute),
            Hop::Via(_) if packet.hops_left == 0 => {
                self.give_up(now, node, &packet, DropReason::HopLimit);
            }
            Hop::Via(via) => {
                let sender = self.router.sender(via);
                packet.receiver = sender.receiver;
                self.offer(now, sender.interface, packet);
            }
        }
        None
    }

    /// Whether the sending station of a ground link is in a handover to another satellite, during
    /// which packets are dropped.
    fn is_turning(&self, now: Nanos, interface: u32, receiver: u32) -> bool {
        let sender = Sender {
            interface,
            receiver,
        };
        self.router.is_turning(&self.topology, now, sender)
    }

    /// The agent that receives packets of `protocol` that pass through `node`.
    #[inline]
    pub fn transit(&self, node: NodeId, protocol: u8) -> Option<u32> {
        let mut all = self.transits.iter();
        let found = all.find(|(at, of, _)| *at == node && *of == protocol);
        found.map(|(.., agent)| *agent)
    }

    /// Like [`Self::transit`], for a packet that has arrived at `node`. `None` if the node is the
    /// packet's destination.
    #[inline]
    pub fn transit_of(&self, node: NodeId, packet: &Packet) -> Option<u32> {
        let agent = self.transit(node, packet.protocol)?;
        let here = self.router.hop(node, packet.target) == Hop::Here;
        (!here).then_some(agent)
    }

    /// Counts a packet that was dropped at a node.
    pub fn drop(&mut self, reason: DropReason) {
        self.dropped.add(reason);
    }

    /// Passes the recorded samples of a simplex link to the recorder.
    #[inline]
    fn tell(&mut self, index: usize) {
        if self.probing {
            self.tell_samples(index);
        }
    }

    fn tell_samples(&mut self, index: usize) {
        if let Some(probes) = self.simplex_links[index].probes() {
            for sample in probes.drain() {
                if let Some(recorder) = &mut self.recorder {
                    recorder.record(sample);
                }
            }
        }
    }

    /// Passes all samples and captured packets up to `now` to the observers.
    pub fn settle(&mut self, now: Nanos) {
        for index in 0..self.simplex_links.len() {
            if self.is_own(index as u32) {
                self.simplex_links[index].settle(now);
                self.tell(index);
            }
        }
    }

    /// Number of packets that reached the end of a delay line. Each of them was a separate event.
    fn wired(&self) -> u64 {
        let wires = self
            .simplex_links
            .iter()
            .map(|simplex_link| match simplex_link {
                SimplexLink::DelayLine(wire) => wire.arrived(),
                _ => 0,
            });
        wires.sum::<u64>() + self.unfolded
    }

    /// Work that the world has done so far. `events` is the number of events of agents, which the
    /// world counts.
    pub fn progress(&self, events: u64) -> WorkCounts {
        let wired = self.wired();
        WorkCounts {
            events: events + self.instants + wired,
            hops: self.hops + wired,
            sent: self.sent,
        }
    }

    pub fn packet_counts(&self) -> PacketCounts {
        let mut counts = PacketCounts {
            sent: self.sent,
            delivered: self.delivered,
            dropped: self.dropped,
            ..PacketCounts::default()
        };
        for simplex_link in &self.simplex_links {
            let stats = simplex_link.stats(0);
            counts.duplicated += stats.duplicated;
            counts.dropped = counts.dropped.plus(&stats.dropped);
            counts.in_flight += simplex_link.in_flight();
        }
        counts
    }

    /// Enables probes of a simplex link.
    pub fn set_probes(&mut self, simplex_link: usize, probes: SimplexLinkProbes) {
        self.probing = true;
        self.simplex_links[simplex_link].set_probes(probes);
    }

    pub fn simplex_link(
        &self,
        link: LinkId,
        direction: LinkDirection,
    ) -> Result<usize, BuildError> {
        if link.index() < self.topology.links.len() {
            Ok(simplex_link(link, direction))
        } else {
            Err(BuildError::UnknownLink(link.index()))
        }
    }
}

impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Network")
            .field("topology", &self.topology)
            .field("simplex_links", &self.simplex_links)
            .field("captures", &self.captures)
            .finish_non_exhaustive()
    }
}
