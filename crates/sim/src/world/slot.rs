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
    /// `None` once it has stopped, or if it never does.
    pub stop: Option<Nanos>,
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
        if self.start.is_some() {
            return self.start;
        }
        match (self.agent.poll_timeout(), self.stop) {
            (Some(timeout), Some(stop)) => Some(timeout.min(stop)),
            (timeout, stop) => timeout.or(stop),
        }
    }

    /// Starts or stops it, as is due at `now`; whether its timeout is due then.
    #[cold]
    pub fn change(&mut self, now: Nanos) -> bool {
        if self.start.take().is_some() {
            self.agent.start(now);
        }
        if self.stop.is_some_and(|stop| stop <= now) {
            self.stop = None;
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

    /// How packets on `path` leave, if they can.
    #[inline(always)] // Once, where a packet is sent.
    pub fn departure(&mut self, network: &Network, path: Path) -> Option<Departure> {
        match self.paths.iter().find(|(known, _)| *known == path) {
            Some((_, departure)) => *departure,
            None => self.learn(network, path),
        }
    }

    #[cold]
    fn learn(&mut self, network: &Network, path: Path) -> Option<Departure> {
        let departure = network.departure(self.node, path);
        if self.paths.len() == MOST_PATHS {
            self.paths.clear();
        }
        self.paths.push((path, departure));
        departure
    }
}
