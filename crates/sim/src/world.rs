//! The world: a network, the agents that live in it, and the clock.

mod ends;
mod outside;
mod slot;

use std::any::Any;
use std::io::{self, Write};

use anabranch_transport::Nanos;

use crate::agent::{Agent, AgentId, Attachment};
use crate::arena::Arena;
use crate::capture::Capture;
use crate::demux::Demux;
use crate::error::{BuildError, RunError};
use crate::ids::{Direction, LinkId, MediumId, NodeId};
use crate::ledger::{Ledger, Progress};
use crate::link::LinkStats;
use crate::network::Network;
use crate::packet::Parcel;
use crate::probe::{LaneProbes, LinkProbes, Recorder};
use crate::rng::{Rng, Seed};
use crate::topology::Topology;
use crate::watch::PacketWatch;
use crate::wifi::StationStats;
use ends::{deliver, drive, set_alarm};
use slot::Slot;

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
    /// Events but those of media and wires.
    events: u64,
    /// An agent that never stops, told at the end of the event.
    stalled: Option<RunError>,
    /// Events before this are run, and at their sources those that follow before any other.
    ahead: Nanos,
    /// Nothing but events is to be thought of before this: neither is it later than `ahead`, nor do routes change before it.
    clear: Nanos,
    /// One event is to be run, whenever it is.
    single: bool,
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
            ahead: 0,
            clear: 0,
            single: false,
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
        let source = self.network.sources() + index;
        self.slots.push(Slot {
            agent,
            source,
            node,
            protocol,
            start: Some(start),
            turn: start,
            stop: stop.unwrap_or(Nanos::MAX),
            transit: false,
            paths: Vec::new(),
            woken: 0,
            wakes: 0,
        });
        self.network.agenda.grow(source + 1);
        set_alarm(&mut self.network, self.now, &self.slots[index]);
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
        self.network.progress(self.events)
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
        self.network.unfold(self.now, lane);
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
        let capture = Capture::new(writer, taps)?;
        self.network.add_capture(self.now, capture);
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
        // An agent that was driven from outside has stalled.
        self.stalled.take().map_or(Ok(()), Err)?;
        self.network.at_length = true;
        (self.ahead, self.clear) = (end.saturating_add(1), 0);
        self.run();
        // Where it has stalled, the media's events of that instant, which come last, have not happened.
        let (reached, last) = match self.stalled {
            Some(_) => (self.now, self.now.saturating_sub(1)),
            None => (end, end),
        };
        self.network.settle_media(reached, last);
        self.stalled.take().map_or(Ok(()), Err)?;
        self.now = self.now.max(end);
        Ok(())
    }

    /// Runs the next event; `false` if there is none.
    ///
    /// # Errors
    /// [`RunError::Stalled`].
    pub fn step(&mut self) -> Result<bool, RunError> {
        self.stalled.take().map_or(Ok(()), Err)?;
        if self.network.agenda.is_empty() {
            return Ok(false);
        }
        (self.ahead, self.clear) = (0, 0);
        self.single = true;
        self.run();
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
            self.drive_before(id.index());
        }
        Some(result)
    }

    /// Runs the events before `ahead`, or a single one.
    #[inline(never)]
    fn run(&mut self) {
        loop {
            let (at, source) = self.network.agenda.first();
            if at >= self.clear && !self.goes_on(at) {
                return;
            }
            self.now = at;
            // The agent that has something to do.
            let slot = if source < self.network.lanes.len() {
                let Some((node, packet)) = self.network.step_lane(at, source) else {
                    continue;
                };
                let (network, slots) = (&mut self.network, &mut self.slots[..]);
                let demux = &self.demux[node.index()];
                deliver(network, at, demux, slots, (node, packet))
            } else {
                match source.checked_sub(self.network.sources()) {
                    None => self
                        .step_cell(source)
                        .and_then(|agent| self.slots.get_mut(agent)),
                    Some(agent) => {
                        self.events += 1;
                        let slot = &mut self.slots[agent];
                        if !slot.wake(at) {
                            self.stall(agent);
                            return;
                        }
                        Some(slot)
                    }
                }
            };
            if let Some(slot) = slot
                && !drive(&mut self.network, self.now, &mut self.arena, slot)
            {
                let agent = slot.source - self.network.sources();
                self.stall(agent);
            }
        }
    }

    /// Whether an event at `at` is run: it is before `ahead` or the single one, or the end of time is to be reached. Brings the routes up to
    /// it then.
    #[cold]
    #[inline(never)]
    fn goes_on(&mut self, at: Nanos) -> bool {
        if at >= self.ahead {
            let single = std::mem::take(&mut self.single);
            if (!single && self.ahead < Nanos::MAX) || self.network.agenda.is_empty() {
                return false;
            }
        }
        if self.network.next_route_change() <= at {
            self.follow_links(at);
        }
        self.clear = self.ahead.min(self.network.next_route_change());
        true
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

    /// Runs what is next at a medium: an agent that has something to do, the others having done it.
    #[inline(never)]
    fn step_cell(&mut self, source: usize) -> Option<usize> {
        let cell = source - self.network.lanes.len();
        let now = self.network.step_cell(self.now, cell, self.ahead);
        self.now = now;
        let mut last = None;
        while let Some((interface, packet)) = self.network.poll_arrived() {
            if let Some(agent) = last.take() {
                self.drive_before(agent);
            }
            if let Some((node, packet)) = self.network.arrive(now, interface, packet) {
                last = self.deliver(node, packet);
            }
        }
        last
    }

    /// The agent that a packet was for, which has something to do then.
    fn deliver(&mut self, node: NodeId, packet: Parcel) -> Option<usize> {
        let demux = &self.demux[node.index()];
        let (network, slots) = (&mut self.network, &mut self.slots[..]);
        let slot = deliver(network, self.now, demux, slots, (node, packet))?;
        Some(slot.source - self.network.sources())
    }

    /// An agent wakes or sends without end.
    #[cold]
    fn stall(&mut self, index: usize) {
        let at = self.now;
        self.stalled = Some(RunError::Stalled { agent: index, at });
        (self.ahead, self.clear) = (0, 0);
    }

    /// Sends what an agent has to send and sets its alarm.
    #[inline(never)]
    fn drive_before(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        if !drive(&mut self.network, self.now, &mut self.arena, slot) {
            self.stall(index);
        }
    }
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
