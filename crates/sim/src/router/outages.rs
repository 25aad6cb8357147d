//! Link outages as known to the routers, which learn of them after a delay.

use std::collections::VecDeque;

use anabranch_transport::Nanos;

use crate::topology::{Routing, Topology};

/// State of all simplex links as known to the routers.
#[derive(Debug)]
pub(super) struct Outages {
    /// Changes in the order of time: time, index of the simplex link, and whether it goes down.
    changes: VecDeque<(Nanos, u32, bool)>,
    /// Time of the first change in `changes`; [`Nanos::MAX`] if there is none.
    next: Nanos,
    /// For each simplex link, whether it is down.
    pub lanes_down: Vec<bool>,
}

impl Outages {
    pub fn new(topology: &Topology) -> Self {
        let mut changes: Vec<(Nanos, u32, bool)> = Vec::new();
        if let Routing::FollowsLinks { after } = topology.routing {
            let outages = topology.links().flat_map(|id| {
                let link = &topology.links[id.index()];
                let lanes = [(id.0 * 2, &link.forward), (id.0 * 2 + 1, &link.backward)];
                lanes.into_iter().flat_map(|(lane, direction)| {
                    direction.outages.iter().map(move |span| (lane, *span))
                })
            });
            for (lane, span) in outages {
                changes.push((span.from.saturating_add(after), lane, true));
                if span.until < Nanos::MAX {
                    changes.push((span.until.saturating_add(after), lane, false));
                }
            }
        }
        // Of several changes at one instant, changes to up are applied before changes to down. A
        // direction that goes down again immediately is therefore down.
        changes.sort_unstable();
        Self {
            next: changes.first().map_or(Nanos::MAX, |change| change.0),
            changes: changes.into(),
            lanes_down: vec![false; topology.interfaces().len()],
        }
    }

    /// Times of the remaining changes, in order.
    pub fn changes(&self) -> impl Iterator<Item = Nanos> + '_ {
        self.changes.iter().map(|change| change.0)
    }

    /// Time of the next change, nanoseconds; [`Nanos::MAX`] if there is none.
    #[inline]
    pub fn next_change(&self) -> Nanos {
        self.next
    }

    /// For each link, whether it is down in at least one direction.
    pub fn links_down(&self) -> Vec<bool> {
        let links = self.lanes_down.chunks(2);
        links.map(|ends| ends.contains(&true)).collect()
    }

    /// Updates the states to `now`. Returns whether the state of a link has changed.
    pub fn follow(&mut self, now: Nanos) -> bool {
        if self.next > now {
            return false;
        }
        let before = self.links_down();
        while let Some(&(at, lane, down)) = self.changes.front()
            && at <= now
        {
            self.lanes_down[lane as usize] = down;
            self.changes.pop_front();
        }
        self.next = self.changes.front().map_or(Nanos::MAX, |change| change.0);
        before != self.links_down()
    }
}
