//! A part of a divided world: see [`World::divide`].

use anabranch_transport::Nanos;

use super::World;
use crate::crossing::Crossing;
use crate::error::{BuildError, RunError};
use crate::ids::{LinkDirection, LinkId};
use crate::ledger::WorkCounts;
use crate::scheduler::EventKey;
use crate::topology::lane;

impl World {
    /// Restricts the world to the events of the nodes that `owners`, with a part for each node in
    /// the order of their indices, assigns to `part`. Worlds of the same topology, agents and seed
    /// that are restricted to different parts give together the results of one world, if each calls
    /// in turn
    ///
    /// 1. [`World::next_event`] and [`World::take_crossings`], the earliest of all of which is the
    ///    beginning of the next window;
    /// 2. [`World::accept`] for the crossings to its part;
    /// 3. [`World::run_window`] from the beginning of the window, which returns its end.
    ///
    /// Statistics of a link belong to the part of the node that sends, and those of an agent to
    /// that of its node; counters of the ledger and of the progress are added. Nodes of
    /// [`Topology::inseparable`](crate::Topology::inseparable) pairs must have the same part.
    /// Agents are attached before, and captures are not divided, because they number the packets of
    /// all.
    ///
    /// # Errors
    /// [`BuildError::Owners`] if the number of owners is not that of the nodes;
    /// [`BuildError::AlreadyRun`] if the world has run, because each part would repeat and count
    /// the past. After an error the world is unchanged.
    pub fn divide(&mut self, part: u32, owners: &[u32]) -> Result<(), BuildError> {
        let (owned, nodes) = (owners.len(), self.demux.len());
        if owned != nodes {
            return Err(BuildError::Owners {
                owners: owned,
                nodes,
            });
        }
        if self.now > 0 || self.progress() != WorkCounts::default() {
            return Err(BuildError::AlreadyRun(self.now));
        }
        self.network.divide(part, owners);
        for slot in &self.slots {
            if owners[slot.node.index()] != part {
                self.network.scheduler.set(slot.source, EventKey::NONE);
            }
        }
        Ok(())
    }

    /// Whether a direction of a link belongs to this part; if the world is not divided, each does.
    pub fn owns(&self, link: LinkId, direction: LinkDirection) -> bool {
        self.network.is_own(lane(link, direction) as u32)
    }

    /// The packets that left this part since the last call.
    pub fn take_crossings(&mut self) -> Vec<Crossing> {
        self.network.take_crossings()
    }

    /// Accepts a packet from another part.
    ///
    /// # Errors
    /// [`RunError::Lookahead`] if its arrival is in the past.
    pub fn accept(&mut self, crossing: Crossing) -> Result<(), RunError> {
        if crossing.at() < self.clear {
            return Err(RunError::Lookahead { at: crossing.at() });
        }
        self.network.accept(crossing);
        Ok(())
    }

    /// Runs the events from `begin`, the earliest event of all parts, to the end of the window, at
    /// most those before `end`; returns the end of the window. All parts have the same windows.
    ///
    /// # Errors
    /// [`RunError::Stalled`], and [`RunError::Lookahead`] if a delay is 0.
    pub fn run_window(&mut self, begin: Nanos, end: Nanos) -> Result<Nanos, RunError> {
        self.follow_routes(begin);
        let lookahead = self.network.lookahead(begin);
        if lookahead == 0 {
            return Err(RunError::Lookahead { at: begin });
        }
        let end = begin.saturating_add(lookahead).min(end);
        let end = end.min(self.network.next_route_change());
        (self.ahead, self.clear) = (end, end);
        self.run();
        self.stalled.take().map_or(Ok(end), Err)
    }

    /// Ends the run of a part at `end`, which becomes the current time: no event before or at `end`
    /// is left in any part.
    pub fn end_windows(&mut self, end: Nanos) {
        self.now = self.now.max(end);
    }
}
