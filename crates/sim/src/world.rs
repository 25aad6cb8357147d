//! The world: a network, the agents that live in it, and the clock.

mod outside;

use std::any::Any;
use std::io::{self, Write};

use anabranch_transport::{Nanos, Path, Transmit};
use bytes::{Buf, Bytes};

use crate::agenda::Key;
use crate::agent::{Agent, AgentId, Attachment};
use crate::arena::Arena;
use crate::capture::Capture;
use crate::demux::Demux;
use crate::error::{BuildError, RunError};
use crate::ids::{Direction, LinkId, MediumId, NodeId};
use crate::ledger::{Ledger, Progress};
use crate::link::LinkStats;
use crate::network::{Departure, Network};
use crate::packet::{DropReason, HOP_LIMIT, Packet, Parcel};
use crate::probe::{LaneProbes, LinkProbes, Recorder};
use crate::rng::{Rng, Seed};
use crate::topology::Topology;
use crate::watch::PacketWatch;
use crate::wifi::StationStats;

/// How often an agent may wake at one instant before the world calls it stalled.
const MOST_WAKES: u32 = 100_000;
/// How many packets an agent may send at one wake before the world calls it stalled.
const MOST_PACKETS: u32 = 1 << 20;
/// How many paths of an agent are remembered with the way they leave its node.
const MOST_PATHS: usize = 64;

/// An agent and what the world knows about it.
struct Slot {
    agent: Box<dyn Agent>,
    node: NodeId,
    protocol: u8,
    /// `None` once it has started.
    start: Option<Nanos>,
    /// `None` once it has stopped, or if it never does.
    stop: Option<Nanos>,
    /// It takes what passes through its node.
    transit: bool,
    /// Paths it sent on, resolved. It sends on few, so a search beats a map.
    paths: Vec<(Path, Option<Departure>)>,
    woken: Nanos,
    /// Wake-ups at the instant `woken`.
    wakes: u32,
}

impl Slot {
    /// When the agent must be woken next.
    fn deadline(&self) -> Option<Nanos> {
        if self.start.is_some() {
            return self.start;
        }
        match (self.agent.poll_timeout(), self.stop) {
            (Some(timeout), Some(stop)) => Some(timeout.min(stop)),
            (timeout, stop) => timeout.or(stop),
        }
    }

    /// Whether it is woken too often at one instant.
    fn stalls(&mut self, now: Nanos) -> bool {
        if self.woken != now {
            self.woken = now;
            self.wakes = 0;
        }
        self.wakes += 1;
        self.wakes > MOST_WAKES
    }

    #[inline]
    fn departure(&mut self, network: &Network, path: Path) -> Option<Departure> {
        if let Some((_, departure)) = self.paths.iter().find(|(known, _)| *known == path) {
            return *departure;
        }
        let departure = network.departure(self.node, path);
        if self.paths.len() == MOST_PATHS {
            self.paths.clear();
        }
        self.paths.push((path, departure));
        departure
    }
}

/// A deterministic network with agents: a function of its topology, its agents and its seed.
///
/// ```
/// use anabranch_sim::{DirectionConfig, DropTail, Family, Limit, LinkConfig, Seed, Topology, World};
///
/// let mut topology = Topology::new();
/// let a = topology.add_node("a")?;
/// let b = topology.add_node("b")?;
/// let queue = DropTail::new(Limit::Packets(10))?;
/// topology.add_link(LinkConfig {
///     name: "satellite".into(),
///     between: [a, b],
///     forward: DirectionConfig::new(2_000_000, 250_000_000).with_queue(queue),
///     backward: DirectionConfig::new(2_000_000, 250_000_000),
/// })?;
/// let mut world = World::new(topology, Seed::new(1, 0))?;
/// world.run_until(1_000_000_000)?;
/// world.ledger().check()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct World {
    now: Nanos,
    seed: Seed,
    network: Network,
    slots: Vec<Slot>,
    /// Of each node.
    demux: Vec<Demux>,
    arena: Arena,
    events: u64,
    /// An agent that never stops, told at the end of the event.
    stalled: Option<RunError>,
}

impl World {
    /// A world at time 0 without agents.
    ///
    /// # Errors
    /// [`BuildError::ZeroRate`] and [`BuildError::Outages`], which only a whole link shows.
    pub fn new(topology: Topology, seed: Seed) -> Result<Self, BuildError> {
        let demux = topology.nodes().map(|_| Demux::default()).collect();
        Ok(Self {
            now: 0,
            seed,
            network: Network::new(topology, seed)?,
            slots: Vec::new(),
            demux,
            arena: Arena::new(),
            events: 0,
            stalled: None,
        })
    }

    /// Puts an agent into the world.
    ///
    /// # Errors
    /// [`BuildError::UnknownNode`], [`BuildError::BindingTaken`], [`BuildError::StartsInThePast`]; the world is as before.
    pub fn attach(
        &mut self,
        attachment: Attachment,
        agent: impl Agent,
    ) -> Result<AgentId, BuildError> {
        self.attach_boxed(attachment, Box::new(agent))
    }

    /// The same with an agent whose type its maker knows.
    ///
    /// # Errors
    /// As [`World::attach`].
    pub fn attach_boxed(
        &mut self,
        attachment: Attachment,
        agent: Box<dyn Agent>,
    ) -> Result<AgentId, BuildError> {
        let Attachment {
            node,
            protocol,
            bindings,
            start,
            stop,
        } = attachment;
        self.network.topology.check(node)?;
        if start < self.now {
            return Err(BuildError::StartsInThePast {
                start,
                now: self.now,
            });
        }
        let demux = &mut self.demux[node.index()];
        let taken = |port| BuildError::BindingTaken {
            node: self.network.topology.node_name(node).to_owned(),
            protocol,
            port,
        };
        for (place, binding) in bindings.iter().enumerate() {
            if demux.has(protocol, *binding) || bindings[..place].contains(binding) {
                return Err(taken(binding.port));
            }
        }
        let index = self.slots.len();
        for binding in bindings {
            demux
                .add(protocol, binding, index as u32)
                .map_err(|_| taken(binding.port))?;
        }
        self.slots.push(Slot {
            agent,
            node,
            protocol,
            start: Some(start),
            stop,
            transit: false,
            paths: Vec::new(),
            woken: 0,
            wakes: 0,
        });
        let sources = self.network.sources() + self.slots.len();
        self.network.agenda.grow(sources);
        self.set_alarm(index);
        Ok(AgentId(index as u32))
    }

    /// Puts an agent into the world that takes every packet of an IP protocol which `node` would forward, and may send under the
    /// addresses of others: a proxy. The packets that it takes and sends are not shown to the watch, since they are not those of
    /// the hosts.
    ///
    /// # Errors
    /// [`BuildError::UnknownNode`], [`BuildError::BindingTaken`] (port `None`) where the node has such an agent already.
    pub fn attach_transit(
        &mut self,
        node: NodeId,
        protocol: u8,
        agent: Box<dyn Agent>,
    ) -> Result<AgentId, BuildError> {
        self.network.topology.check(node)?;
        if self.network.transit(node, protocol).is_some() {
            return Err(BuildError::BindingTaken {
                node: self.network.topology.node_name(node).to_owned(),
                protocol,
                port: None,
            });
        }
        let attachment = Attachment {
            node,
            protocol,
            bindings: Vec::new(),
            start: self.now,
            stop: None,
        };
        let id = self.attach_boxed(attachment, agent)?;
        self.slots[id.index()].transit = true;
        self.network.transits.push((node, protocol, id.0));
        Ok(id)
    }

    // ---- getters

    /// The present.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// The seed.
    pub fn seed(&self) -> Seed {
        self.seed
    }

    /// Nodes, links and addresses. The configurations of the directions have moved into the world.
    pub fn topology(&self) -> &Topology {
        &self.network.topology
    }

    /// The random stream of the component named `name`, from its beginning.
    pub fn stream(&self, name: &str) -> Rng {
        self.seed.stream(name)
    }

    /// The agent `id`, if it is a `T`.
    pub fn agent<T: Agent>(&self, id: AgentId) -> Option<&T> {
        let slot = self.slots.get(id.index())?;
        (&*slot.agent as &dyn Any).downcast_ref()
    }

    /// What a link direction did up to the present.
    ///
    /// # Errors
    /// [`BuildError::UnknownLink`].
    pub fn link_stats(&self, link: LinkId, direction: Direction) -> Result<LinkStats, BuildError> {
        let lane = self.network.lane(link, direction)?;
        Ok(self.network.lanes[lane].stats(self.now))
    }

    /// Where every packet went.
    pub fn ledger(&self) -> Ledger {
        self.network.ledger()
    }

    /// How much work was done.
    pub fn progress(&self) -> Progress {
        Progress {
            events: self.events,
            hops: self.network.hops,
            sent: self.network.sent,
        }
    }

    /// When something happens next; `None` if nothing ever will.
    pub fn next_event(&self) -> Option<Nanos> {
        self.network.agenda.earliest().map(|(at, _)| at)
    }

    // ---- observers

    /// Turns on probes of a link direction; their samples go to the recorder.
    ///
    /// # Errors
    /// [`BuildError::UnknownLink`], [`BuildError::EmptyBin`].
    pub fn probe(
        &mut self,
        link: LinkId,
        direction: Direction,
        probes: LinkProbes,
    ) -> Result<(), BuildError> {
        if probes.throughput == Some(0) {
            return Err(BuildError::EmptyBin);
        }
        let lane = self.network.lane(link, direction)?;
        // What has happened before is not theirs to tell.
        self.network.lanes[lane].settle(self.now);
        self.network
            .set_probes(lane, LaneProbes::new(probes, link, direction));
        Ok(())
    }

    /// Sets who takes the samples of the probes, and gives back who did before.
    pub fn set_recorder(&mut self, recorder: Box<dyn Recorder>) -> Option<Box<dyn Recorder>> {
        self.network.recorder.replace(recorder)
    }

    /// Sets who is shown every packet that an agent sends and every one that an agent is given, and gives back who was
    /// before.
    pub fn set_watch(&mut self, watch: Box<dyn PacketWatch>) -> Option<Box<dyn PacketWatch>> {
        self.network.watch.replace(watch)
    }

    /// What a node has done and heard as a station of a medium; `None` if it is none.
    pub fn station_stats(&self, medium: MediumId, node: NodeId) -> Option<StationStats> {
        self.network.station_stats(medium, node)
    }

    /// Begins a capture: what passes the interfaces of the given nodes at the given links goes to `writer` as pcapng.
    /// Wrap a file in a `BufWriter`; [`World::finish`] flushes it.
    ///
    /// # Errors
    /// [`CaptureError`].
    pub fn capture(
        &mut self,
        writer: Box<dyn Write>,
        interfaces: &[(NodeId, LinkId)],
    ) -> Result<(), CaptureError> {
        let topology = &self.network.topology;
        let named = interfaces.iter().map(|&(node, link)| {
            let name = format!("{}@{}", topology.node_name(node), topology.link_name(link));
            topology
                .interface(node, link)
                .map(|interface| (interface, name))
        });
        let taps = named.collect::<Result<Vec<_>, BuildError>>()?;
        self.network.add_capture(Capture::new(writer, taps)?);
        Ok(())
    }

    /// Tells the recorder and the captures everything up to the present, and flushes the captures. The world may run on.
    ///
    /// # Errors
    /// The first error of a capture's writer since the last call.
    pub fn finish(&mut self) -> io::Result<()> {
        self.network.settle(self.now);
        let mut result = Ok(());
        for capture in &mut self.network.captures {
            // Each is flushed, whatever became of the others.
            let finished = capture.finish(self.now);
            result = result.and(finished);
        }
        result
    }

    // ---- running

    /// Runs everything that happens up to and at `end`, which becomes the present.
    ///
    /// # Errors
    /// [`RunError::Stalled`].
    pub fn run_until(&mut self, end: Nanos) -> Result<(), RunError> {
        while let Some((at, source)) = self.network.agenda.earliest()
            && at <= end
        {
            self.run_event(at, source, end.saturating_add(1));
            if self.stalled.is_some() {
                return self.stalled.take().map_or(Ok(()), Err);
            }
        }
        self.now = self.now.max(end);
        Ok(())
    }

    /// Runs the next event; `false` if there is none.
    ///
    /// # Errors
    /// [`RunError::Stalled`].
    pub fn step(&mut self) -> Result<bool, RunError> {
        let Some((at, source)) = self.network.agenda.earliest() else {
            return Ok(false);
        };
        self.run_event(at, source, 0);
        self.stalled.take().map_or(Ok(true), Err)
    }

    /// Lets the caller act on an agent from outside (write, close, change a setting), then drives it. `None` if `id` is
    /// not a `T`.
    pub fn with_agent<T: Agent, R>(
        &mut self,
        id: AgentId,
        act: impl FnOnce(&mut T, Nanos) -> R,
    ) -> Option<R> {
        let slot = self.slots.get_mut(id.index())?;
        let agent = (&mut *slot.agent as &mut dyn Any).downcast_mut()?;
        let result = act(agent, self.now);
        let now = self.now;
        self.follow_links(now);
        let slot = &self.slots[id.index()];
        if slot.start.is_none() {
            self.drive(id.index());
        }
        Some(result)
    }

    /// Runs the next event, and at its source those that follow it before any other and before `end`.
    #[inline]
    fn run_event(&mut self, at: Nanos, source: usize, end: Nanos) {
        self.now = at;
        self.events += 1;
        if self.network.next_route_change() <= at {
            self.follow_links(at);
        }
        let lanes = self.network.lanes.len();
        if source < lanes {
            if let Some((node, packet)) = self.network.step_lane(at, source) {
                self.deliver(node, packet);
            }
            return;
        }
        match source.checked_sub(self.network.sources()) {
            None => self.step_cell(source - lanes, end),
            Some(agent) => self.wake(agent),
        }
    }

    /// Lets routes follow the links, and agents forget the ways they know.
    #[cold]
    fn follow_links(&mut self, now: Nanos) {
        if self.network.follow_links(now) {
            for slot in &mut self.slots {
                slot.paths.clear();
            }
        }
    }

    #[inline(never)]
    fn step_cell(&mut self, cell: usize, end: Nanos) {
        let (now, more) = self.network.step_cell(self.now, cell, end);
        self.now = now;
        self.events += more;
        while let Some((interface, packet)) = self.network.poll_arrived() {
            if let Some((node, packet)) = self.network.arrive(now, interface, packet) {
                self.deliver(node, packet);
            }
        }
    }

    #[inline]
    fn deliver(&mut self, node: NodeId, packet: Parcel) {
        let agent = match self.network.transit_of(node, &packet) {
            None => self.demux[node.index()].find(&packet),
            transit => transit,
        };
        let listening = agent.filter(|&agent| self.slots[agent as usize].start.is_none());
        let Some(agent) = listening else {
            return self.network.leave(self.now, node, packet);
        };
        self.network.delivered += 1;
        if let Some(watch) = &mut self.network.watch
            && !self.slots[agent as usize].transit
        {
            watch.delivered(self.now, &packet);
        }
        let path = Path::new(packet.destination, packet.source);
        let ecn = packet.ecn;
        let header = usize::from(packet.header);
        let mut datagram = self.network.parcels.unwrap(packet);
        if header != 0 {
            datagram.advance(header);
        }
        let slot = &mut self.slots[agent as usize];
        slot.agent.handle_datagram(self.now, path, ecn, datagram);
        self.drive(agent as usize);
    }

    #[inline(never)]
    fn wake(&mut self, index: usize) {
        let now = self.now;
        let slot = &mut self.slots[index];
        if slot.stalls(now) {
            self.stalled = Some(RunError::Stalled {
                agent: index,
                at: now,
            });
            return;
        }
        if slot.start.take().is_some() {
            slot.agent.start(now);
        }
        if slot.stop.is_some_and(|stop| stop <= now) {
            slot.stop = None;
            slot.agent.stop(now);
        }
        if slot.agent.poll_timeout().is_some_and(|due| due <= now) {
            slot.agent.handle_timeout(now);
        }
        self.drive(index);
    }

    /// Sends what an agent has to send and sets its alarm: the loop law of transports.
    #[inline]
    fn drive(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        let mut sent = 0;
        while let Some(transmit) = slot.agent.poll_transmit(self.now, self.arena.buffer()) {
            let bytes = self.arena.take();
            debug_assert_eq!(bytes.len(), transmit.len);
            send(&mut self.network, self.now, slot, transmit, bytes);
            sent += 1;
            if sent == MOST_PACKETS {
                self.stalled = Some(RunError::Stalled {
                    agent: index,
                    at: self.now,
                });
                break;
            }
        }
        self.set_alarm(index);
    }

    #[inline]
    fn set_alarm(&mut self, index: usize) {
        let deadline = self.slots[index].deadline();
        let network = &mut self.network;
        let source = network.sources() + index;
        match deadline {
            None => network.agenda.set(source, Key::NEVER),
            Some(deadline) => {
                let at = deadline.max(self.now);
                // A deadline that has not moved keeps its place among the events of its instant.
                if network.agenda.get(source).at() != at || at == Nanos::MAX {
                    network.agenda.set(source, Key::new(at, network.sequence));
                    network.sequence += 1;
                }
            }
        }
    }
}

/// Sends one packet.
#[inline]
fn send(network: &mut Network, now: Nanos, slot: &mut Slot, transmit: Transmit, bytes: Bytes) {
    let departure = slot.departure(network, transmit.path);
    let id = network.sent;
    network.sent += 1;
    let Some(Departure {
        source,
        target,
        via,
    }) = departure
    else {
        return network.drop(DropReason::NoRoute);
    };
    let parcel = network.parcels.wrap(Packet {
        bytes,
        id,
        source,
        destination: transmit.path.remote,
        target,
        sent: now,
        departed: Nanos::MAX,
        added: 0,
        ecn: transmit.ecn,
        may_fragment: transmit.may_fragment,
        fragment: 0,
        header: 0,
        protocol: slot.protocol,
        hops_left: HOP_LIMIT,
    });
    if let Some(watch) = &mut network.watch
        && !slot.transit
    {
        watch.sent(&parcel);
    }
    network.offer(now, via, parcel);
}

/// Why a capture cannot begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// There is no such interface.
    #[error(transparent)]
    Interface(#[from] BuildError),
    /// The writer failed.
    #[error("cannot write the capture")]
    Io(#[from] io::Error),
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World")
            .field("now", &self.now)
            .field("seed", &self.seed)
            .field("network", &self.network)
            .field("agents", &self.slots.len())
            .finish_non_exhaustive()
    }
}
