//! Where a packet goes next: looked up by two small numbers, in tables that are made for the
//! destinations of packets only.
//!
//! A table holds for each node what it does with packets for one interface, the target; tables are
//! numbered in the order in which they are first needed. Without satellites they lead over the
//! fewest links ([`fewest_links`]). Where nodes move, a
//! [`RoutingKind`](crate::routing::RoutingKind) makes them of the delays of the moment, again in
//! each interval ([`moving`]).

mod fewest_links;
mod moving;
mod outages;

use std::net::IpAddr;

use anabranch_orbit::Tree;
use anabranch_transport::Nanos;

use crate::ids::{NodeId, opposite};
use crate::packet::NO_RECEIVER;
use crate::topology::Topology;
use fewest_links::FewestLinks;
use moving::Moving;

/// No route leads there.
pub(crate) const NOWHERE: u32 = u32::MAX;
/// The packet is at its destination.
pub(crate) const HERE: u32 = u32::MAX - 1;
/// From here on, up to [`HERE`], a hop is a ground link: the number of one of the moment.
pub(crate) const GROUND: u32 = 1 << 31;

/// What a node does with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hop {
    /// Hand it to an agent of this node.
    Here,
    /// Send it from this interface, or by this ground link.
    Via(u32),
    /// Nothing leads there.
    Nowhere,
}

/// The interface that sends a packet, and the one that receives it where it is sent by a ground
/// link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sender {
    pub interface: u32,
    pub receiver: u32,
}

impl Sender {
    /// The interface where the packet arrives.
    pub fn far(self) -> u32 {
        match self.receiver {
            NO_RECEIVER => opposite(self.interface),
            receiver => receiver,
        }
    }
}

/// The tables of a world, and what they follow.
#[derive(Debug)]
pub(crate) struct Router {
    nodes: usize,
    /// Of each interface the number of its table; [`NOWHERE`] where nothing was sent to it yet.
    tables: Vec<u32>,
    /// The targets of the tables.
    targets: Vec<u32>,
    /// All tables, one after another.
    next: Vec<u32>,
    made_by: MadeBy,
}

#[derive(Debug)]
enum MadeBy {
    FewestLinks(FewestLinks),
    /// With the tree of each table.
    Moving(Box<Moving>, Vec<Tree>),
}

impl Router {
    /// Tables at time 0, before [`Router::follow`].
    pub fn new(topology: &Topology) -> Self {
        Self {
            nodes: topology.nodes().len(),
            tables: vec![NOWHERE; topology.interfaces().len()],
            targets: Vec::new(),
            next: Vec::new(),
            made_by: match Moving::new(topology) {
                Some(moving) => MadeBy::Moving(Box::new(moving), Vec::new()),
                None => MadeBy::FewestLinks(FewestLinks::new(topology)),
            },
        }
    }

    /// The table for what goes to the interface `target`.
    pub fn table(&mut self, topology: &Topology, target: u32) -> u32 {
        match self.tables[target as usize] {
            NOWHERE => self.add_table(topology, target),
            table => table,
        }
    }

    #[cold]
    fn add_table(&mut self, topology: &Topology, target: u32) -> u32 {
        let table = self.targets.len();
        self.tables[target as usize] = table as u32;
        self.targets.push(target);
        let begin = self.next.len();
        self.next.resize(begin + self.nodes, NOWHERE);
        match &mut self.made_by {
            MadeBy::FewestLinks(made_by) => {
                made_by.add(topology, target, &mut self.next[begin..]);
            }
            MadeBy::Moving(moving, trees) => {
                let mut tree = Tree::default();
                moving.fill(topology, target, &mut tree, &mut self.next[begin..]);
                trees.push(tree);
            }
        }
        table as u32
    }

    /// What `node` does with a packet, by the table of its target.
    #[inline]
    pub fn hop(&self, node: NodeId, table: u32) -> Hop {
        match self.next(node, table) {
            NOWHERE => Hop::Nowhere,
            HERE => Hop::Here,
            via => Hop::Via(via),
        }
    }

    /// The same as a number: [`HERE`], [`NOWHERE`], the interface that sends it, or a ground link.
    #[inline(always)] // Asked of each packet at each hop.
    pub fn next(&self, node: NodeId, table: u32) -> u32 {
        self.next[table as usize * self.nodes + node.index()]
    }

    /// Which interfaces a hop means.
    #[inline]
    pub fn sender(&self, via: u32) -> Sender {
        match (&self.made_by, via.checked_sub(GROUND)) {
            (MadeBy::Moving(moving, _), Some(ground)) => moving.ground_link(ground),
            _ => Sender {
                interface: via,
                receiver: NO_RECEIVER,
            },
        }
    }

    /// The hop by which `node` sends to the target of `table` what has the source address `source`:
    /// by the interface that has this address if the packet cannot come back that way, else by the
    /// one on the way to the target.
    pub fn first_hop(
        &self,
        topology: &Topology,
        node: NodeId,
        source: IpAddr,
        table: u32,
    ) -> Option<u32> {
        let Hop::Via(by_target) = self.hop(node, table) else {
            return None;
        };
        match &self.made_by {
            MadeBy::Moving(..) => Some(by_target),
            MadeBy::FewestLinks(made_by) => {
                let target = self.targets[table as usize];
                let by_source = made_by.by_source(topology, node, source, (table, target), |at| {
                    self.hop(at, table) == Hop::Here
                });
                Some(by_source.unwrap_or(by_target))
            }
        }
    }

    /// When tables change, in the order of time, as far as it is known; in each interval where
    /// nodes move.
    pub fn changes(&self, until: Nanos) -> Vec<Nanos> {
        match &self.made_by {
            MadeBy::FewestLinks(made_by) => made_by.changes().collect(),
            MadeBy::Moving(moving, _) => moving.changes(until),
        }
    }

    /// When they change next; [`Nanos::MAX`] for never.
    #[inline]
    pub fn next_change(&self) -> Nanos {
        match &self.made_by {
            MadeBy::FewestLinks(made_by) => made_by.next_change(),
            MadeBy::Moving(moving, _) => moving.next_change(),
        }
    }

    /// Brings the tables up to `now`; whether they may have changed.
    pub fn follow(&mut self, topology: &Topology, now: Nanos) -> bool {
        let all = self
            .targets
            .iter()
            .zip(self.next.chunks_mut(self.nodes.max(1)));
        match &mut self.made_by {
            MadeBy::FewestLinks(made_by) => made_by.follow(topology, now, all),
            MadeBy::Moving(moving, trees) => {
                let changed = moving.follow(topology, now);
                if changed {
                    for ((&target, next), tree) in all.zip(trees) {
                        moving.fill(topology, target, tree, next);
                    }
                }
                changed
            }
        }
    }

    /// Whether the station of a ground link turns to another satellite at `now`, so that packets
    /// are dropped.
    #[inline(never)]
    pub fn is_turning(&self, topology: &Topology, now: Nanos, sender: Sender) -> bool {
        match &self.made_by {
            MadeBy::Moving(moving, _) => moving.is_turning(topology, now, sender),
            MadeBy::FewestLinks(_) => false,
        }
    }
}

#[cfg(test)]
mod tests;
