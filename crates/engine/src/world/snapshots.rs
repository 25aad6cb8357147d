//! Snapshots of the carried traffic, which are taken while a world runs.

use anabranch_sim::{LinkDirection, LinkId, LinkStats, World};
use anabranch_transport::Nanos;

use crate::agent::flow_stats::SharedFlowStats;
use crate::metric::snapshot::TrafficSnapshot;

/// Takes snapshots at the times that metrics need.
pub struct SnapshotTaker<'a> {
    moments: Vec<Nanos>,
    links: &'a [Vec<LinkId>],
    tallies: &'a [SharedFlowStats],
    marks: Vec<TrafficSnapshot>,
}

impl<'a> SnapshotTaker<'a> {
    /// Creates a taker without snapshots. `moments` are the times of the snapshots, in ascending
    /// order. `links` are in the order of the spec, and `tallies` in the order of the members'
    /// numbers.
    pub fn new(
        moments: Vec<Nanos>,
        links: &'a [Vec<LinkId>],
        tallies: &'a [SharedFlowStats],
    ) -> Self {
        Self {
            moments,
            links,
            tallies,
            marks: Vec::new(),
        }
    }

    /// First snapshot time after `now`, at which the world has to stop; at most `end`.
    pub fn stop(&self, now: Nanos, end: Nanos) -> Nanos {
        let next = self.moments.partition_point(|&moment| moment <= now);
        self.moments
            .get(next)
            .map_or(end, |&moment| moment.min(end))
    }

    /// Takes a snapshot if `now` is one of the times.
    pub fn look(&mut self, world: &World, now: Nanos) {
        if self.moments.binary_search(&now).is_err() {
            return;
        }
        let links = self.links.iter().map(|members| link_stats(world, members));
        let tallies: Vec<_> = self.tallies.iter().map(|tally| tally.borrow()).collect();
        let mark = TrafficSnapshot::read(now, links, tallies.iter().map(|tally| &**tally));
        self.marks.push(mark);
    }

    /// Completes the recorded series of all flows at the end of the run.
    pub fn settle(&self, now: Nanos) {
        self.tallies
            .iter()
            .for_each(|tally| tally.borrow_mut().settle(now));
    }

    /// The snapshots taken, in order.
    pub fn marks(self) -> Vec<TrafficSnapshot> {
        self.marks
    }
}

/// Counters of the members of a link, forward and backward; `None` for a direction that belongs to
/// another part of a divided world.
pub fn own_link_stats(world: &World, members: &[LinkId]) -> Vec<[Option<LinkStats>; 2]> {
    let of = |&id: &LinkId| {
        LinkDirection::BOTH.map(|direction| {
            let own = world.owns(id, direction);
            own.then(|| world.link_stats(id, direction).ok()).flatten()
        })
    };
    members.iter().map(of).collect()
}

/// Counters of the members of a link, forward and backward. The counters of directions that belong
/// to another part of a divided world are 0.
pub fn link_stats(world: &World, members: &[LinkId]) -> Vec<[LinkStats; 2]> {
    let own = own_link_stats(world, members).into_iter();
    own.map(|it| it.map(Option::unwrap_or_default)).collect()
}
