//! Agent slot: an agent of a world, and the state that the world keeps for it.

use anabranch_transport::{Nanos, Path};

use crate::agent::Agent;
use crate::ids::NodeId;
use crate::network::{Departure, Network};

/// Maximum number of wake-ups of an agent at one instant; beyond it the world reports the agent as
/// stalled.
const MAX_WAKES: u32 = 100_000;
/// Maximum number of paths of an agent for which the route is cached.
const MAX_PATHS: usize = 64;

/// An agent, and the state that the world keeps for it.
pub(super) struct AgentSlot {
    pub agent: Box<dyn Agent>,
    /// Index of the agent among the event sources.
    pub source: usize,
    pub node: NodeId,
    pub protocol: u8,
    /// Start time, nanoseconds; `None` after the agent has started.
    pub start: Option<Nanos>,
    /// Time of the agent's start or stop, whichever is next, nanoseconds. [`Nanos::MAX`] after the
    /// stop, or if there is none.
    pub turn: Nanos,
    pub stop: Nanos,
    /// Whether the agent is a proxy, which receives the packets that pass through its node.
    pub transit: bool,
    /// Cached routes of the paths on which the agent has sent. The list is short, so a linear
    /// search is faster than a map.
    pub paths: Vec<(Path, Option<Departure>)>,
    pub woken: Nanos,
    /// Number of wake-ups at the instant `woken`.
    pub wakes: u32,
}

impl AgentSlot {
    /// Time at which the agent must be woken next; `None`: never.
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

    /// Wakes the agent, which must then be driven. Returns false if the agent has stalled.
    #[inline(always)] // Called once, in the event loop.
    pub fn wake(&mut self, now: Nanos) -> bool {
        if self.stalls(now) {
            return false;
        }
        // If neither the start nor the stop is due, the agent's timeout is due.
        if self.turn > now || self.change(now) {
            self.agent.handle_timeout(now);
        }
        true
    }

    /// Starts or stops the agent, whichever is due at `now`. Returns whether its timeout is also
    /// due.
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

    /// Whether the agent has been woken too often at the instant `now`.
    pub fn stalls(&mut self, now: Nanos) -> bool {
        if self.woken != now {
            self.woken = now;
            self.wakes = 0;
        }
        self.wakes += 1;
        self.wakes > MAX_WAKES
    }

    /// Index in [`AgentSlot::paths`] of the route for `path`.
    #[inline(always)] // Called once, where a packet is sent.
    pub fn way(&mut self, network: &mut Network, path: &Path) -> usize {
        match self.paths.iter().position(|(known, _)| known == path) {
            Some(place) => place,
            None => self.learn(network, path),
        }
    }

    /// Resolves the route of a path and adds it to the cache. Returns its index.
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
