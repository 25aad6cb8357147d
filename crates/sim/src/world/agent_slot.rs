//! An agent of a world, with related state of the world.

use anabranch_transport::{Nanos, Path};

use crate::agent::Agent;
use crate::ids::NodeId;
use crate::network::{Departure, Network};

/// Maximum number of wake-ups of an agent at one instant; above it the world reports it as stalled.
const MAX_WAKES: u32 = 100_000;
/// Maximum number of paths of an agent for which the departure is cached.
const MAX_PATHS: usize = 64;

/// An agent and the related state of the world.
pub(super) struct AgentSlot {
    pub agent: Box<dyn Agent>,
    /// Index among the event sources.
    pub source: usize,
    pub node: NodeId,
    pub protocol: u8,
    /// `None` once it has started.
    pub start: Option<Nanos>,
    /// The time of its start or of its stop, whichever is next. [`Nanos::MAX`] once it has stopped,
    /// or if it never does.
    pub turn: Nanos,
    pub stop: Nanos,
    /// The agent receives the packets that pass through its node.
    pub transit: bool,
    /// Resolved paths on which it has sent. The list is short, so a linear search is faster than a
    /// map.
    pub paths: Vec<(Path, Option<Departure>)>,
    pub woken: Nanos,
    /// Wake-ups at the instant `woken`.
    pub wakes: u32,
}

impl AgentSlot {
    /// The time at which the agent must be woken next.
    pub fn deadline(&self) -> Option<Nanos> {
        self.start.or_else(|| self.deadline_once_started())
    }

    /// Like [`Self::deadline`], for an agent that has started.
    #[inline(always)] // Called where agents are driven.
    pub fn deadline_once_started(&self) -> Option<Nanos> {
        match self.agent.poll_timeout() {
            Some(timeout) => Some(timeout.min(self.turn)),
            None => Some(self.turn).filter(|turn| *turn != Nanos::MAX),
        }
    }

    /// Wakes the agent, which must then be driven; `false` if it has stalled.
    #[inline(always)] // Called once, in the event loop.
    pub fn wake(&mut self, now: Nanos) -> bool {
        if self.stalls(now) {
            return false;
        }
        // If neither the start nor the stop is due, the timeout is due.
        if self.turn > now || self.change(now) {
            self.agent.handle_timeout(now);
        }
        true
    }

    /// Starts or stops the agent, as is due at `now`; returns whether its timeout is also due.
    #[cold]
    pub fn change(&mut self, now: Nanos) -> bool {
        if self.start.take().is_some() {
            self.agent.start(now);
        }
        self.turn = self.stop;
        if self.stop <= now {
            (self.stop, self.turn) = (Nanos::MAX, Nanos::MAX);
            self.agent.stop(now);
        }
        self.agent.poll_timeout().is_some_and(|due| due <= now)
    }

    /// Whether the agent is woken too often at one instant.
    pub fn stalls(&mut self, now: Nanos) -> bool {
        if self.woken != now {
            self.woken = now;
            self.wakes = 0;
        }
        self.wakes += 1;
        self.wakes > MAX_WAKES
    }

    /// Index in [`AgentSlot::paths`] of the departure of packets on `path`.
    #[inline(always)] // Called once, where a packet is sent.
    pub fn way(&mut self, network: &mut Network, path: &Path) -> usize {
        match self.paths.iter().position(|(known, _)| known == path) {
            Some(place) => place,
            None => self.learn(network, path),
        }
    }

    /// Resolves a path and adds it to the cache; returns its index.
    #[cold]
    #[inline(never)]
    fn learn(&mut self, network: &mut Network, path: &Path) -> usize {
        let departure = network.departure(self.node, *path);
        if self.paths.len() == MAX_PATHS {
            self.paths.clear();
        }
        self.paths.push((*path, departure));
        self.paths.len() - 1
    }
}
