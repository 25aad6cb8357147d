//! A part of a divided world: see [`World::divide`].

use anabranch_transport::Nanos;

use super::World;
use crate::crossing::Crossing;
use crate::error::{BuildError, RunError};
use crate::ids::{LinkDirection, LinkId};
use crate::packet_counts::WorkCounts;
use crate::router::RouteTables;
use crate::scheduler::EventKey;
use crate::topology::simplex_link;

impl World {
    /// Restricts the world to the events of the nodes of `part`. `owners` contains the part of each
    /// node, in the order of node indices. Worlds of the same topology, agents and seed that are
    /// restricted to different parts together give the results of one undivided world. For each
    /// window, the caller must call these functions in this order, each for all parts:
    ///
    /// 1. [`World::next_event`] and [`World::take_crossings`]: the window begins at the earliest of
    ///    these events and of the arrivals of these packets;
    /// 2. [`World::accept`] for each packet that crosses to the part;
    /// 3. if [`World::shares_routes`], [`World::compute_routes`] with the results of
    ///    [`World::take_targets`] of all parts, and [`World::accept_routes`] with the tables of
    ///    each other part; without this step, each part computes all routes that it needs;
    /// 4. [`World::run_window`] from the beginning of the window; it returns the end of the window.
    ///
    /// Statistics of a link belong to the part of the node that sends, and statistics of an agent
    /// to the part of its node. The packet counts and the counters of the progress must be added
    /// over all parts. Nodes of [`Topology::inseparable`](crate::Topology::inseparable) pairs must
    /// have the same part. Agents must be attached before the division. A world with captures
    /// should not be divided, because the packets in a capture have numbers that count the packets
    /// of all nodes.
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

    /// Whether a direction of a link belongs to this part; if the world is not divided, every
    /// direction does.
    pub fn owns(&self, link: LinkId, direction: LinkDirection) -> bool {
        self.network.is_own(simplex_link(link, direction) as u32)
    }

    /// The packets that left this part since the last call.
    pub fn take_crossings(&mut self) -> Vec<Crossing> {
        self.network.take_crossings()
    }

    /// Accepts a packet from another part.
    ///
    /// # Errors
    /// [`RunError::Lookahead`] if the packet would arrive in the past.
    pub fn accept(&mut self, crossing: Crossing) -> Result<(), RunError> {
        if crossing.at() < self.clear {
            return Err(RunError::Lookahead { at: crossing.at() });
        }
        self.network.accept(crossing);
        Ok(())
    }

    /// Whether the parts should share the computation of routes before a window that begins at
    /// `begin`: nodes move, and the routes change. The answer is the same for all parts.
    pub fn shares_routes(&self, begin: Nanos) -> bool {
        self.network.shares_routes(begin)
    }

    /// Numbers of the interfaces to which this part has sent the first packet since the last call.
    pub fn take_targets(&mut self) -> Vec<u32> {
        self.network.take_targets()
    }

    /// Computes this part's share of the routes from `begin` on, which replace those in `tables`.
    /// `targets` contains the results of [`World::take_targets`] of all parts, including this one,
    /// since the last call, in any order.
    pub fn compute_routes(&mut self, begin: Nanos, targets: Vec<u32>, tables: &mut RouteTables) {
        if self.network.compute_routes(begin, targets, tables) {
            self.clear_paths();
        }
    }

    /// Copies the routes that another part has computed from the same `begin` on.
    pub fn accept_routes(&mut self, tables: &RouteTables) {
        self.network.accept_routes(tables);
    }

    /// Runs the events of one window, which begins at `begin`, the earliest event of all parts.
    /// Returns the end of the window, which is the same for all parts and at most `end`; events at
    /// the end are not run.
    ///
    /// # Errors
    /// [`RunError::Stalled`], and [`RunError::Lookahead`] if a packet could reach another
    /// part without a delay.
    pub fn run_window(&mut self, begin: Nanos, end: Nanos) -> Result<Nanos, RunError> {
        self.follow_routes(begin);
        self.network.complete_routes();
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

    /// Ends the run of a part at `end`, which becomes the current time. No event up to and
    /// including `end` may be left in any part.
    pub fn end_windows(&mut self, end: Nanos) {
        self.now = self.now.max(end);
    }
}
