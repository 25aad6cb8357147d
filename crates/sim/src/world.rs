//! World: a network with its agents and its simulated clock.

mod agent_io;
mod agent_slot;
mod division;
mod external;

use std::any::Any;
use std::io::{self, Write};

use anabranch_transport::Nanos;

use crate::agent::{Agent, AgentId, Attachment};
use crate::arena::Arena;
use crate::capture::Capture;
use crate::demux::Demux;
use crate::error::{BuildError, RunError};
use crate::ids::{LinkDirection, LinkId, MediumId, NodeId};
use crate::link::LinkStats;
use crate::network::Network;
use crate::packet::Parcel;
use crate::packet_counts::{PacketCounts, WorkCounts};
use crate::packet_tap::PacketTap;
use crate::probe::{LinkProbes, Recorder, SimplexLinkProbes};
use crate::rng::{Rng, Seed};
use crate::topology::Topology;
use crate::wifi::StationStats;
use agent_io::{deliver, drive, set_alarm};
use agent_slot::AgentSlot;

/// A deterministic network with agents, whose behaviour depends only on its topology, its agents
/// and its seed.
///
/// ```
/// use anabranch_sim::{AddressFamily, DirectionConfig, DropTail, LinkConfig, QueueLimit};
/// use anabranch_sim::{Seed, Topology, World};
///
/// let mut topology = Topology::new();
/// let a = topology.add_node("a")?;
/// let b = topology.add_node("b")?;
/// let queue = DropTail::new(QueueLimit::Packets(10))?;
/// topology.add_link(LinkConfig {
///     name: "satellite".into(),
///     between: [a, b],
///     forward: DirectionConfig::new(2_000_000, 250_000_000).with_queue(queue),
///     backward: DirectionConfig::new(2_000_000, 250_000_000),
/// })?;
/// let mut world = World::new(topology, Seed::new(1, 0))?;
/// world.run_until(1_000_000_000)?;
/// world.packet_counts().check()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct World {
    now: Nanos,
    seed: Seed,
    network: Network,
    slots: Vec<AgentSlot>,
    /// The demultiplexer of each node.
    demux: Vec<Demux>,
    arena: Arena,
    /// Number of events of agents so far; the network counts those of links and media.
    events: u64,
    /// An agent that does not stop waking up or sending; reported as an error at the end of the
    /// event.
    stalled: Option<RunError>,
    /// Time before which events are run. A link or a medium may process several of its events
    /// before this time without returning to the main loop.
    ahead: Nanos,
    /// Time before which events need no check of routes: at most `ahead` and the next change of
    /// routes.
    clear: Nanos,
    /// Whether to run only a single event, at any time.
    single: bool,
}

impl World {
    /// Creates a world at time 0 without agents.
    ///
    /// # Errors
    /// [`BuildError::ZeroRate`] and [`BuildError::Outages`], which depend on several settings of a
    /// link and can be detected only now.
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

    /// Adds an agent to the world.
    ///
    /// # Errors
    /// [`BuildError::UnknownNode`], [`BuildError::BindingTaken`], [`BuildError::StartsInThePast`];
    /// after an error the world is unchanged.
    pub fn attach(
        &mut self,
        attachment: Attachment,
        agent: impl Agent,
    ) -> Result<AgentId, BuildError> {
        self.attach_boxed(attachment, Box::new(agent))
    }

    /// Like [`World::attach`], for a boxed agent.
    ///
    /// # Errors
    /// The errors of [`World::attach`].
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
        self.slots.push(AgentSlot {
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
        self.network.scheduler.grow(source + 1);
        set_alarm(&mut self.network, self.now, &self.slots[index]);
        Ok(AgentId(index as u32))
    }

    /// Adds a proxy: an agent that receives every packet of an IP protocol that `node` would
    /// forward, and may send packets with the addresses of other hosts. The packet tap does not
    /// receive the packets of the proxy, because they are not packets of the end hosts.
    ///
    /// # Errors
    /// [`BuildError::UnknownNode`], or [`BuildError::BindingTaken`] (with port `None`) if the node
    /// already has a proxy for this protocol.
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

    // ---- getters: state of the world

    /// Current simulated time, nanoseconds.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Seed of the world.
    pub fn seed(&self) -> Seed {
        self.seed
    }

    /// Topology of the world: nodes, links and addresses. It no longer contains the configurations
    /// of link directions, because they were moved into the world.
    pub fn topology(&self) -> &Topology {
        &self.network.topology
    }

    /// The random stream of the component named `name`, at its start.
    pub fn stream(&self, name: &str) -> Rng {
        self.seed.stream(name)
    }

    /// The agent `id`; `None` if its type is not `T`.
    pub fn agent<T: Agent>(&self, id: AgentId) -> Option<&T> {
        let slot = self.slots.get(id.index())?;
        (&*slot.agent as &dyn Any).downcast_ref()
    }

    /// Statistics of a link direction up to the current time.
    ///
    /// # Errors
    /// [`BuildError::UnknownLink`].
    pub fn link_stats(
        &self,
        link: LinkId,
        direction: LinkDirection,
    ) -> Result<LinkStats, BuildError> {
        let simplex_link = self.network.simplex_link(link, direction)?;
        Ok(self.network.simplex_links[simplex_link].stats(self.now))
    }

    /// Packet counts of the whole world.
    pub fn packet_counts(&self) -> PacketCounts {
        self.network.packet_counts()
    }

    /// Work that the world has done so far.
    pub fn progress(&self) -> WorkCounts {
        self.network.progress(self.events)
    }

    /// Time of the next event, nanoseconds; `None` if there is none.
    pub fn next_event(&self) -> Option<Nanos> {
        self.network.scheduler.earliest().map(|(at, _)| at)
    }

    // ---- observers: probes, taps and captures

    /// Enables probes of a link direction; their samples are passed to the recorder.
    ///
    /// # Errors
    /// [`BuildError::UnknownLink`], [`BuildError::EmptyBin`].
    pub fn probe(
        &mut self,
        link: LinkId,
        direction: LinkDirection,
        probes: LinkProbes,
    ) -> Result<(), BuildError> {
        if probes.throughput == Some(0) {
            return Err(BuildError::EmptyBin);
        }
        let simplex_link = self.network.simplex_link(link, direction)?;
        // Events before the current time are not reported to the new probes.
        self.network.unfold(self.now, simplex_link);
        self.network.simplex_links[simplex_link].settle(self.now);
        self.network.set_probes(
            simplex_link,
            SimplexLinkProbes::new(probes, link, direction),
        );
        Ok(())
    }

    /// Sets the recorder that receives the samples of all probes. Returns the previous recorder.
    pub fn set_recorder(&mut self, recorder: Box<dyn Recorder>) -> Option<Box<dyn Recorder>> {
        self.network.recorder.replace(recorder)
    }

    /// Sets the packet tap, which receives every packet that an agent sends and every packet
    /// delivered to an agent. Returns the previous tap.
    pub fn set_tap(&mut self, tap: Box<dyn PacketTap>) -> Option<Box<dyn PacketTap>> {
        self.network.tap.replace(tap)
    }

    /// Frame statistics of a node as a station of a medium; `None` if the node is not a station of
    /// it.
    pub fn station_stats(&self, medium: MediumId, node: NodeId) -> Option<StationStats> {
        self.network.station_stats(medium, node)
    }

    /// Starts a capture: packets that pass the interfaces of the given nodes at the given links are
    /// written to `writer` in pcapng format. A file should be wrapped in a `BufWriter`;
    /// [`World::finish`] flushes it.
    ///
    /// # Errors
    /// [`CaptureError`] if an interface does not exist or the writer fails.
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

    /// Passes all samples and packets up to the current time to the recorder and the captures, and
    /// flushes the captures. The world may continue to run.
    ///
    /// # Errors
    /// The first error of a capture's writer since the last call.
    pub fn finish(&mut self) -> io::Result<()> {
        self.network.settle(self.now);
        let mut result = Ok(());
        for capture in &mut self.network.captures {
            // All files are flushed, even if one of them fails.
            let finished = capture.finish(self.now);
            result = result.and(finished);
        }
        result
    }

    // ---- running: events and agents

    /// Runs all events up to and including `end`, and sets the current time to `end`.
    ///
    /// # Errors
    /// [`RunError::Stalled`] if an agent never stops waking up or sending at one instant.
    pub fn run_until(&mut self, end: Nanos) -> Result<(), RunError> {
        // An agent may have stalled while the caller was driving it.
        self.stalled.take().map_or(Ok(()), Err)?;
        self.network.at_length = true;
        (self.ahead, self.clear) = (end.saturating_add(1), 0);
        self.run();
        // If an agent has stalled, the media's events of this instant have not been run, because
        // they are the last of their instant.
        let (reached, last) = match self.stalled {
            Some(_) => (self.now, self.now.saturating_sub(1)),
            None => (end, end),
        };
        self.network.settle_media(reached, last);
        self.stalled.take().map_or(Ok(()), Err)?;
        self.now = self.now.max(end);
        Ok(())
    }

    /// Runs the next event. Returns false if there is none.
    ///
    /// # Errors
    /// [`RunError::Stalled`] if an agent never stops waking up or sending at one instant.
    pub fn step(&mut self) -> Result<bool, RunError> {
        self.stalled.take().map_or(Ok(()), Err)?;
        if self.network.scheduler.is_empty() {
            return Ok(false);
        }
        (self.ahead, self.clear) = (0, 0);
        self.single = true;
        self.run();
        self.stalled.take().map_or(Ok(true), Err)
    }

    /// Calls `act` with an agent, for example to write, close or change a setting, and then drives
    /// the agent. Returns `None` if the type of the agent is not `T`.
    pub fn with_agent<T: Agent, R>(
        &mut self,
        id: AgentId,
        act: impl FnOnce(&mut T, Nanos) -> R,
    ) -> Option<R> {
        let slot = self.slots.get_mut(id.index())?;
        let agent = (&mut *slot.agent as &mut dyn Any).downcast_mut()?;
        let result = act(agent, self.now);
        let now = self.now;
        self.follow_routes(now);
        let slot = &self.slots[id.index()];
        if slot.start.is_none() {
            self.drive_before(id.index());
        }
        Some(result)
    }

    /// Runs all events before `ahead`, or a single event.
    #[inline(never)]
    fn run(&mut self) {
        loop {
            let (at, source) = self.network.scheduler.first();
            if at >= self.clear && !self.goes_on(at) {
                return;
            }
            self.now = at;
            // Determines the agent that must be driven.
            let slot = if source < self.network.simplex_links.len() {
                let Some((node, packet)) = self.network.step_simplex_link(at, source) else {
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

    /// Whether to run an event at `at`: it is before `ahead`, it is the requested single event, or
    /// the run extends to the end of time. If so, updates the routes to `at`.
    #[cold]
    #[inline(never)]
    fn goes_on(&mut self, at: Nanos) -> bool {
        if at >= self.ahead {
            let single = std::mem::take(&mut self.single);
            if (!single && self.ahead < Nanos::MAX) || self.network.scheduler.is_empty() {
                return false;
            }
        }
        if self.network.next_route_change() <= at {
            self.follow_routes(at);
        }
        self.clear = self.ahead.min(self.network.next_route_change());
        true
    }

    /// Updates the routes to the link states at `now`, and clears the resolved paths of agents if
    /// they may have changed.
    #[cold]
    fn follow_routes(&mut self, now: Nanos) {
        if self.network.follow_routes(now) {
            self.clear_paths();
        }
    }

    /// Clears the resolved paths of agents, because routes have changed.
    fn clear_paths(&mut self) {
        for slot in &mut self.slots {
            slot.paths.clear();
        }
    }

    /// Runs the next event of a medium. Returns one agent that must be driven; the others have
    /// already been driven.
    #[inline(never)]
    fn step_cell(&mut self, source: usize) -> Option<usize> {
        let cell = source - self.network.simplex_links.len();
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

    /// Delivers a packet that arrived at its destination node. Returns the receiving agent, which
    /// must then be driven.
    fn deliver(&mut self, node: NodeId, packet: Parcel) -> Option<usize> {
        let demux = &self.demux[node.index()];
        let (network, slots) = (&mut self.network, &mut self.slots[..]);
        let slot = deliver(network, self.now, demux, slots, (node, packet))?;
        Some(slot.source - self.network.sources())
    }

    /// Records that an agent wakes up or sends endlessly at the current time.
    #[cold]
    fn stall(&mut self, index: usize) {
        let at = self.now;
        self.stalled = Some(RunError::Stalled { agent: index, at });
        (self.ahead, self.clear) = (0, 0);
    }

    /// Sends the packets of an agent and sets its alarm.
    #[inline(never)]
    fn drive_before(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        if !drive(&mut self.network, self.now, &mut self.arena, slot) {
            self.stall(index);
        }
    }
}

/// Reason why a capture cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// The interface does not exist.
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
