//! An agent of a world, and what the world knows about it.

use anabranch_transport::{Nanos, Path};

use crate::agent::Agent;
use crate::ids::NodeId;
use crate::network::{Departure, Network};

/// How often an agent may wake at one instant before the world calls it stalled.
const MOST_WAKES: u32 = 100_000;
/// How many paths of an agent are remembered with the way they leave its node.
const MOST_PATHS: usize = 64;

/// An agent and what the world knows about it.
pub(super) struct Slot {
    pub agent: Box<dyn Agent>,
    /// Its number among the sources of events.
    pub source: usize,
    pub node: NodeId,
    pub protocol: u8,
    /// `None` once it has started.
    pub start: Option<Nanos>,
    /// When it starts, then when it stops: what is next of them. [`Nanos::MAX`] once it has stopped, or if it never does.
    pub turn: Nanos,
    pub stop: Nanos,
    /// It takes what passes through its node.
    pub transit: bool,
    /// Paths it sent on, resolved. It sends on few, so a search beats a map.
    pub paths: Vec<(Path, Option<Departure>)>,
    pub woken: Nanos,
    /// Wake-ups at the instant `woken`.
    pub wakes: u32,
}

impl Slot {
    /// When the agent must be woken next.
    pub fn deadline(&self) -> Option<Nanos> {
        self.start.or_else(|| self.deadline_once_started())
    }

    /// The same of one that has started.
    #[inline(always)] // Where agents are driven.
    pub fn deadline_once_started(&self) -> Option<Nanos> {
        match self.agent.poll_timeout() {
            Some(timeout) => Some(timeout.min(self.turn)),
            None => Some(self.turn).filter(|turn| *turn != Nanos::MAX),
        }
    }

    /// Wakes it, so that it has something to do; `false` if it has stalled.
    #[inline(always)] // Once, in the loop of events.
    pub fn wake(&mut self, now: Nanos) -> bool {
        if self.stalls(now) {
            return false;
        }
        // What has come is the timeout, where it is neither of the other two.
        if self.turn > now || self.change(now) {
            self.agent.handle_timeout(now);
        }
        true
    }

    /// Starts or stops it, as is due at `now`; whether its timeout is due then.
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

    /// Whether it is woken too often at one instant.
    pub fn stalls(&mut self, now: Nanos) -> bool {
        if self.woken != now {
            self.woken = now;
            self.wakes = 0;
        }
        self.wakes += 1;
        self.wakes > MOST_WAKES
    }

    /// Which of [`Slot::paths`] says how packets on `path` leave.
    #[inline(always)] // Once, where a packet is sent.
    pub fn way(&mut self, network: &mut Network, path: &Path) -> usize {
        match self.paths.iter().position(|(known, _)| known == path) {
            Some(place) => place,
            None => self.learn(network, path),
        }
    }

    /// Looks a path up; its place among those that are known then.
    #[cold]
    #[inline(never)]
    fn learn(&mut self, network: &mut Network, path: &Path) -> usize {
        let departure = network.departure(self.node, *path);
        if self.paths.len() == MOST_PATHS {
            self.paths.clear();
        }
        self.paths.push((*path, departure));
        self.paths.len() - 1
    }
}
