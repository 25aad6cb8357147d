//! Routes over the fewest links, avoiding links that are down.

use std::collections::VecDeque;
use std::net::IpAddr;

use anabranch_transport::Nanos;

use super::outages::Outages;
use super::{HERE, NOWHERE};
use crate::ids::{NodeId, opposite};
use crate::topology::Topology;

/// For each link, whether it is down. An empty slice means that no link is down.
#[derive(Clone, Copy, Debug)]
struct Down<'a>(&'a [bool]);

impl Down<'_> {
    fn has(self, interface: u32) -> bool {
        self.0.get(interface as usize / 2).is_some_and(|down| *down)
    }
}

/// Routes of all nodes towards one target interface.
#[derive(Clone, Debug)]
struct Routes {
    target: u32,
    next: Vec<u32>,
    /// Number of links from each node to the target.
    distance: Vec<u32>,
    given: Vec<bool>,
    /// For each node, whether it can reach the target interface only through the node that has this
    /// interface.
    behind: Vec<bool>,
}

/// Routing over the fewest links, which follows outages.
#[derive(Debug)]
pub(super) struct FewestLinks {
    outages: Outages,
    /// Two versions of each table: with every link up, and for the current link states.
    tables: Vec<[Routes; 2]>,
}

impl FewestLinks {
    pub fn new(topology: &Topology) -> Self {
        Self {
            outages: Outages::new(topology),
            tables: Vec::new(),
        }
    }

    pub fn changes(&self) -> impl Iterator<Item = Nanos> + '_ {
        self.outages.changes()
    }

    #[inline]
    pub fn next_change(&self) -> Nanos {
        self.outages.next_change()
    }

    #[cfg(test)]
    pub fn is_down(&self, lane: usize) -> bool {
        self.outages.lanes_down[lane]
    }

    /// Adds and fills the table of a target.
    pub fn add(&mut self, topology: &Topology, target: u32, next: &mut [u32]) {
        let base = Routes::new(topology, target);
        let down = self.outages.links_down();
        let now = match down.contains(&true) {
            true => base.around(topology, Down(&down)),
            false => base.clone(),
        };
        next.copy_from_slice(&now.next);
        self.tables.push([base, now]);
    }

    /// Updates all tables to `now`. Returns whether the state of a link has changed.
    pub fn follow<'a>(
        &mut self,
        topology: &Topology,
        now: Nanos,
        all: impl Iterator<Item = (&'a u32, &'a mut [u32])>,
    ) -> bool {
        let changed = self.outages.follow(now);
        if changed {
            let down = self.outages.links_down();
            for ([base, current], (_, next)) in self.tables.iter_mut().zip(all) {
                *current = base.around(topology, Down(&down));
                next.copy_from_slice(&current.next);
            }
        }
        changed
    }

    /// Interface of `node` that has the address `source`, as first hop to the target. `None` if
    /// there is no such interface, if a packet sent from it could return to the node, or if a
    /// static route applies.
    pub fn by_source(
        &self,
        topology: &Topology,
        node: NodeId,
        source: IpAddr,
        (table, target): (u32, u32),
        is_destination: impl Fn(NodeId) -> bool,
    ) -> Option<u32> {
        let [_, routes] = &self.tables[table as usize];
        if routes.given[node.index()] {
            return None;
        }
        let interfaces = topology.interfaces_of(node);
        let by_source = interfaces
            .iter()
            .copied()
            .find(|&i| topology.interfaces()[i as usize].has(source));
        by_source.filter(|via| {
            let far = opposite(*via);
            let neighbour = topology.interfaces()[far as usize].node;
            // Whether the neighbour is the target's node, but the packet would arrive at another
            // interface of this node, and so on a different path.
            let elsewhere = is_destination(neighbour) && far != target;
            let distance = routes.distance[neighbour.index()];
            !elsewhere && distance <= routes.distance[node.index()]
        })
    }
}

impl Routes {
    fn new(topology: &Topology, target: u32) -> Self {
        let nodes = topology.nodes().len();
        let mut routes = Self {
            target,
            next: vec![NOWHERE; nodes],
            distance: vec![u32::MAX; nodes],
            given: vec![false; nodes],
            behind: vec![false; nodes],
        };
        routes.spread(topology);
        routes.give(topology);
        routes
    }

    /// Returns these routes with detours around the links in `down`. A node without a detour to the
    /// target interface keeps its route.
    fn around(&self, topology: &Topology, down: Down<'_>) -> Self {
        let mut routes = self.clone();
        routes.next.fill(NOWHERE);
        routes.spread_around(topology, down);
        for node in 0..self.next.len() {
            if routes.next[node] == NOWHERE {
                routes.next[node] = self.next[node];
                routes.distance[node] = self.distance[node];
            }
        }
        routes.give(topology);
        routes
    }

    /// Adds the static routes.
    fn give(&mut self, topology: &Topology) {
        let given = topology.given_routes.iter();
        for route in given.filter(|route| route.target == self.target) {
            let node = route.node.index();
            if self.next[node] != HERE {
                self.next[node] = route.via;
                self.given[node] = true;
            }
        }
    }

    /// Finds the shortest routes to the target by a breadth-first search that starts at the target.
    /// The search first follows routes that arrive through the target interface. Then it follows
    /// routes through other interfaces of the target's node, for nodes that can reach the target
    /// only through this node.
    fn spread(&mut self, topology: &Topology) {
        let owner = topology.interfaces()[self.target as usize].node;
        let none = Down(&[]);
        let mut frontier = self.spread_through(topology, owner, none);
        self.flood(topology, none, &mut frontier);
        for (behind, next) in self.behind.iter_mut().zip(&self.next) {
            *behind = *next == NOWHERE;
        }
        for &interface in topology.interfaces_of(owner) {
            self.visit(topology, opposite(interface), 1, &mut frontier);
        }
        self.flood(topology, none, &mut frontier);
    }

    /// Like [`Self::spread`], avoiding links that are down. If the target interface's own link is
    /// down, the interface is not reached through another interface of its node, because the
    /// addresses of a node are separate paths.
    fn spread_around(&mut self, topology: &Topology, down: Down<'_>) {
        let owner = topology.interfaces()[self.target as usize].node;
        let mut frontier = self.spread_through(topology, owner, down);
        self.flood(topology, down, &mut frontier);
        for &interface in topology.interfaces_of(owner) {
            let neighbour = topology.interfaces()[opposite(interface) as usize].node;
            if !down.has(interface) && self.behind[neighbour.index()] {
                self.visit(topology, opposite(interface), 1, &mut frontier);
            }
        }
        self.flood(topology, down, &mut frontier);
    }

    /// Starts the search at the link of the target interface.
    fn spread_through(
        &mut self,
        topology: &Topology,
        owner: NodeId,
        down: Down<'_>,
    ) -> VecDeque<NodeId> {
        self.next[owner.index()] = HERE;
        self.distance[owner.index()] = 0;
        let mut frontier = VecDeque::new();
        if !down.has(self.target) {
            self.visit(topology, opposite(self.target), 1, &mut frontier);
        }
        frontier
    }

    /// Visits a node, with `via` as its interface towards the target, if no route of the same
    /// length or shorter is known.
    fn visit(
        &mut self,
        topology: &Topology,
        via: u32,
        distance: u32,
        frontier: &mut VecDeque<NodeId>,
    ) {
        let node = topology.interfaces()[via as usize].node;
        if self.next[node.index()] == NOWHERE {
            self.next[node.index()] = via;
            self.distance[node.index()] = distance;
            frontier.push_back(node);
        }
    }

    fn flood(&mut self, topology: &Topology, down: Down<'_>, frontier: &mut VecDeque<NodeId>) {
        while let Some(node) = frontier.pop_front() {
            let distance = self.distance[node.index()] + 1;
            for &interface in topology.interfaces_of(node) {
                if !down.has(interface) {
                    self.visit(topology, opposite(interface), distance, frontier);
                }
            }
        }
    }
}
