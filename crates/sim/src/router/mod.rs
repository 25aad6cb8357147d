//! Routing tables: the next hop of a packet is looked up by the numbers of the node and the table.
//! Tables are built only for interfaces to which packets are sent.
//!
//! The table of a target interface holds, for each node, the next hop of packets to this interface.
//! Tables are numbered in the order in which they are first needed. Without satellites, tables
//! contain the routes over the fewest links ([`fewest_links`]). If nodes move, a
//! [`RoutingKind`](crate::routing::RoutingKind) computes the routes from the current delays at the
//! start of each interval ([`moving`]).

mod fewest_links;
mod moving;
mod outages;
mod shared;

use std::net::IpAddr;

use anabranch_orbit::Tree;
use anabranch_transport::Nanos;

use crate::ids::{NodeId, opposite};
use crate::packet::{NO_RECEIVER, receiving_interface};
use crate::topology::Topology;
use fewest_links::FewestLinks;
use moving::Moving;
pub use shared::RouteTables;

/// Next hop in a table: there is no route.
pub(crate) const NOWHERE: u32 = u32::MAX;
/// Next hop in a table: the node is the destination.
pub(crate) const HERE: u32 = u32::MAX - 1;
/// Next hops from this number to below [`HERE`] are ground links: the index of a current ground
/// link plus this number.
pub(crate) const GROUND: u32 = 1 << 31;

/// Next hop of a packet at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hop {
    /// The packet is delivered to an agent of this node.
    Here,
    /// The packet is sent from this interface, or over this ground link.
    Via(u32),
    /// There is no route.
    Nowhere,
}

/// Sending interface of a hop, and its receiving interface if the hop is a ground link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sender {
    pub interface: u32,
    pub receiver: u32,
}

impl Sender {
    /// The interface at which the packet arrives.
    pub fn far(self) -> u32 {
        receiving_interface(self.receiver, opposite(self.interface))
    }
}

/// Routing tables of a world, and the network state on which they depend.
#[derive(Debug)]
pub(crate) struct Router {
    nodes: usize,
    /// Table number of each target interface; [`NOWHERE`] if no packet was sent to the interface
    /// yet.
    tables: Vec<u32>,
    /// Target interface of each table.
    targets: Vec<u32>,
    /// Next hops of all tables, concatenated.
    next: Vec<u32>,
    made_by: MadeBy,
    /// Number of tables computed so far.
    computed: u64,
    /// Number of times that the routes over moving nodes have changed, and for each table this
    /// number when the table was last computed. [`Router::follow`] does not use these.
    changes: u64,
    current: Vec<u64>,
}

#[derive(Debug)]
enum MadeBy {
    FewestLinks(FewestLinks),
    /// Routes over moving nodes, with the shortest-path tree of each table.
    Moving(Box<Moving>, Vec<Tree>),
}

impl Router {
    /// Creates a router with the state of time 0 and no tables.
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
            computed: 0,
            changes: 0,
            current: Vec::new(),
        }
    }

    /// Number of tables computed so far.
    pub fn computed(&self) -> u64 {
        self.computed
    }

    /// The interface to which packets of a table are sent.
    pub fn target(&self, table: u32) -> u32 {
        self.targets[table as usize]
    }

    /// The table for packets to the interface `target`.
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
        self.current.push(self.changes);
        self.computed += 1;
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

    /// Next hop at `node` for a packet, according to the table of its target.
    #[inline]
    pub fn hop(&self, node: NodeId, table: u32) -> Hop {
        match self.next(node, table) {
            NOWHERE => Hop::Nowhere,
            HERE => Hop::Here,
            via => Hop::Via(via),
        }
    }

    /// Like [`Self::hop`], encoded as a number: [`HERE`], [`NOWHERE`], the sending interface, or a
    /// ground link.
    #[inline(always)] // Called for each packet at each hop.
    pub fn next(&self, node: NodeId, table: u32) -> u32 {
        self.next[table as usize * self.nodes + node.index()]
    }

    /// Interfaces of an encoded hop.
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

    /// First hop from `node` to the target of `table` for packets with the source address `source`.
    /// It is the interface with this address, unless the packet could then return to the node; in
    /// this case it is the interface of the route to the target.
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

    /// Known times of route changes up to `until`, in order; if nodes move, the start of each
    /// interval.
    pub fn changes(&self, until: Nanos) -> Vec<Nanos> {
        match &self.made_by {
            MadeBy::FewestLinks(made_by) => made_by.changes().collect(),
            MadeBy::Moving(moving, _) => moving.changes(until),
        }
    }

    /// Time of the next route change, nanoseconds; [`Nanos::MAX`] if there is none.
    #[inline]
    pub fn next_change(&self) -> Nanos {
        match &self.made_by {
            MadeBy::FewestLinks(made_by) => made_by.next_change(),
            MadeBy::Moving(moving, _) => moving.next_change(),
        }
    }

    /// Updates the tables to `now`. Returns whether they may have changed.
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
                        self.computed += 1;
                    }
                }
                changed
            }
        }
    }

    /// Like [`Self::follow`], but a table over moving nodes is computed only when
    /// [`Self::current_table`] is called for its target.
    pub fn follow_lazily(&mut self, topology: &Topology, now: Nanos) -> bool {
        let MadeBy::Moving(moving, _) = &mut self.made_by else {
            return self.follow(topology, now);
        };
        let changed = moving.follow(topology, now);
        self.changes += u64::from(changed);
        changed
    }

    /// Like [`Self::table`], after [`Self::follow_lazily`].
    pub fn current_table(&mut self, topology: &Topology, target: u32) -> u32 {
        let table = self.table(topology, target);
        let index = table as usize;
        if let MadeBy::Moving(moving, trees) = &mut self.made_by
            && self.current[index] != self.changes
        {
            let next = &mut self.next[index * self.nodes..][..self.nodes];
            moving.fill(topology, target, &mut trees[index], next);
            self.current[index] = self.changes;
            self.computed += 1;
        }
        table
    }

    /// Whether the station of a ground link is in a handover at `now`, during which packets are
    /// dropped.
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
