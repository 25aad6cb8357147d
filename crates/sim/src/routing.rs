//! Where a packet goes next: computed when a link goes down or comes up, looked up by two small numbers.

use std::collections::VecDeque;
use std::net::IpAddr;

use anabranch_transport::Nanos;

use crate::ids::{NodeId, opposite};
use crate::topology::{Routing, Topology};

/// No way leads there.
pub(crate) const NOWHERE: u32 = u32::MAX;
/// The packet is at its destination.
pub(crate) const HERE: u32 = u32::MAX - 1;

/// What a node does with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hop {
    /// Hand it to an agent of this node.
    Here,
    /// Send it from this interface.
    Via(u32),
    /// Nothing leads there.
    Nowhere,
}

/// The next hop from each node towards each interface.
#[derive(Clone, Debug)]
pub(crate) struct Routes {
    targets: usize,
    next: Vec<u32>,
    /// Links still to cross, for the same pairs.
    distance: Vec<u32>,
    given: Vec<bool>,
    /// Pairs that have a way only through the node of the target.
    behind: Vec<bool>,
}

/// The links that are down. No link is where this is empty.
#[derive(Clone, Copy, Debug)]
struct Down<'a>(&'a [bool]);

impl Down<'_> {
    fn has(self, interface: u32) -> bool {
        self.0.get(interface as usize / 2).is_some_and(|down| *down)
    }
}

impl Routes {
    pub fn new(topology: &Topology) -> Self {
        let targets = topology.interfaces().len();
        let cells = topology.nodes().len() * targets;
        let mut routes = Self {
            targets,
            next: vec![NOWHERE; cells],
            distance: vec![u32::MAX; cells],
            given: vec![false; cells],
            behind: vec![false; cells],
        };
        for target in 0..targets as u32 {
            routes.spread(topology, target);
        }
        routes.give(topology);
        routes
    }

    /// These routes, but around the links that are `down` wherever another way leads to the same interface.
    fn around(&self, topology: &Topology, down: Down<'_>) -> Self {
        let mut routes = self.clone();
        routes.next.fill(NOWHERE);
        for target in 0..self.targets as u32 {
            routes.spread_around(topology, target, down);
        }
        for cell in 0..self.next.len() {
            if routes.next[cell] == NOWHERE {
                routes.next[cell] = self.next[cell];
                routes.distance[cell] = self.distance[cell];
            }
        }
        routes.give(topology);
        routes
    }

    /// Enters the routes that were given.
    fn give(&mut self, topology: &Topology) {
        for route in &topology.given_routes {
            let cell = self.cell(route.node, route.target);
            if self.next[cell] != HERE {
                self.next[cell] = route.via;
                self.given[cell] = true;
            }
        }
    }

    #[inline]
    fn cell(&self, node: NodeId, target: u32) -> usize {
        node.index() * self.targets + target as usize
    }

    /// Finds the shortest ways to the interface `target`, breadth first from its end: first those that arrive through
    /// it, then, for nodes that only lie behind its own node, those that arrive through any other.
    fn spread(&mut self, topology: &Topology, target: u32) {
        let owner = topology.interfaces()[target as usize].node;
        let none = Down(&[]);
        let mut frontier = self.spread_through(topology, target, owner, none);
        self.flood(topology, target, none, &mut frontier);
        for cell in (target as usize..self.next.len()).step_by(self.targets) {
            self.behind[cell] = self.next[cell] == NOWHERE;
        }
        for &interface in topology.interfaces_of(owner) {
            self.visit(topology, target, opposite(interface), 1, &mut frontier);
        }
        self.flood(topology, target, none, &mut frontier);
    }

    /// The same around links that are down. An interface whose own link is down is not reached by another of its node:
    /// several addresses are several paths.
    fn spread_around(&mut self, topology: &Topology, target: u32, down: Down<'_>) {
        let owner = topology.interfaces()[target as usize].node;
        let mut frontier = self.spread_through(topology, target, owner, down);
        self.flood(topology, target, down, &mut frontier);
        for &interface in topology.interfaces_of(owner) {
            let neighbour = topology.interfaces()[opposite(interface) as usize].node;
            if !down.has(interface) && self.behind[self.cell(neighbour, target)] {
                self.visit(topology, target, opposite(interface), 1, &mut frontier);
            }
        }
        self.flood(topology, target, down, &mut frontier);
    }

    /// Begins at the target's own link.
    fn spread_through(
        &mut self,
        topology: &Topology,
        target: u32,
        owner: NodeId,
        down: Down<'_>,
    ) -> VecDeque<NodeId> {
        let home = self.cell(owner, target);
        self.next[home] = HERE;
        self.distance[home] = 0;
        let mut frontier = VecDeque::new();
        if !down.has(target) {
            self.visit(topology, target, opposite(target), 1, &mut frontier);
        }
        frontier
    }

    /// Enters a node by way of `via`, its interface towards the target, if no shorter way is known.
    fn visit(
        &mut self,
        topology: &Topology,
        target: u32,
        via: u32,
        distance: u32,
        frontier: &mut VecDeque<NodeId>,
    ) {
        let node = topology.interfaces()[via as usize].node;
        let cell = self.cell(node, target);
        if self.next[cell] == NOWHERE {
            self.next[cell] = via;
            self.distance[cell] = distance;
            frontier.push_back(node);
        }
    }

    fn flood(
        &mut self,
        topology: &Topology,
        target: u32,
        down: Down<'_>,
        frontier: &mut VecDeque<NodeId>,
    ) {
        while let Some(node) = frontier.pop_front() {
            let distance = self.distance[self.cell(node, target)] + 1;
            for &interface in topology.interfaces_of(node) {
                if !down.has(interface) {
                    self.visit(topology, target, opposite(interface), distance, frontier);
                }
            }
        }
    }

    /// What `node` does with a packet for the interface `target`.
    #[inline]
    pub fn hop(&self, node: NodeId, target: u32) -> Hop {
        match self.next(node, target) {
            NOWHERE => Hop::Nowhere,
            HERE => Hop::Here,
            via => Hop::Via(via),
        }
    }

    /// The same as a number: [`HERE`], [`NOWHERE`], or the interface that sends it.
    #[inline(always)] // Asked of each packet at each hop.
    pub fn next(&self, node: NodeId, target: u32) -> u32 {
        self.next[self.cell(node, target)]
    }

    /// The interface from which `node` sends to `target` what has the source address `source`: the one that has this
    /// address if the packet cannot come back that way, else the one on the way to the target.
    pub fn first_hop(
        &self,
        topology: &Topology,
        node: NodeId,
        source: IpAddr,
        target: u32,
    ) -> Option<u32> {
        let Hop::Via(by_target) = self.hop(node, target) else {
            return None;
        };
        let cell = self.cell(node, target);
        if self.given[cell] {
            return Some(by_target);
        }
        let interfaces = topology.interfaces_of(node);
        let by_source = interfaces
            .iter()
            .copied()
            .find(|&i| topology.interfaces()[i as usize].has(source));
        let sound = |via: &u32| {
            let far = opposite(*via);
            let neighbour = topology.interfaces()[far as usize].node;
            // Directly to the target's node, but at another of its interfaces: that is another path.
            let elsewhere = self.hop(neighbour, target) == Hop::Here && far != target;
            let distance = self.distance[self.cell(neighbour, target)];
            !elsewhere && distance <= self.distance[cell]
        };
        Some(by_source.filter(sound).unwrap_or(by_target))
    }
}

/// Routes that follow the state of links.
#[derive(Debug)]
pub(crate) struct Router {
    /// With every link up.
    base: Routes,
    now: Routes,
    /// What becomes of directions, in the order of time: the lane, and whether it goes down.
    changes: VecDeque<(Nanos, u32, bool)>,
    /// When the first of them is; [`Nanos::MAX`] for never.
    next: Nanos,
    /// The lanes that are down.
    lanes_down: Vec<bool>,
}

impl Router {
    /// The routes at time 0, before [`Router::follow`].
    pub fn new(topology: &Topology) -> Self {
        let base = Routes::new(topology);
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
        // At one instant what comes up is first, so that a direction that goes down again at once is down.
        changes.sort_unstable();
        Self {
            now: base.clone(),
            base,
            next: changes.first().map_or(Nanos::MAX, |change| change.0),
            changes: changes.into(),
            lanes_down: vec![false; topology.interfaces().len()],
        }
    }

    /// The routes of the present.
    #[inline]
    pub fn routes(&self) -> &Routes {
        &self.now
    }

    /// When they change, in the order of time.
    pub fn changes(&self) -> impl Iterator<Item = Nanos> + '_ {
        self.changes.iter().map(|change| change.0)
    }

    /// When they change next; [`Nanos::MAX`] for never.
    #[inline]
    pub fn next_change(&self) -> Nanos {
        self.next
    }

    /// Brings the routes up to `now`; whether a link has changed.
    pub fn follow(&mut self, topology: &Topology, now: Nanos) -> bool {
        let links = |lanes: &[bool]| -> Vec<bool> {
            lanes.chunks(2).map(|ends| ends.contains(&true)).collect()
        };
        let before = links(&self.lanes_down);
        while let Some(&(at, lane, down)) = self.changes.front()
            && at <= now
        {
            self.lanes_down[lane as usize] = down;
            self.changes.pop_front();
        }
        self.next = self.changes.front().map_or(Nanos::MAX, |change| change.0);
        let after = links(&self.lanes_down);
        let changed = before != after;
        if changed {
            self.now = self.base.around(topology, Down(&after));
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Family, LinkId};
    use crate::link::{DirectionConfig, LinkConfig, Outage};

    fn connect(topology: &mut Topology, name: &str, between: [NodeId; 2]) -> LinkId {
        let link = LinkConfig {
            name: name.into(),
            between,
            forward: DirectionConfig::instant(1),
            backward: DirectionConfig::instant(1),
        };
        topology.add_link(link).unwrap()
    }

    fn nodes<const N: usize>(topology: &mut Topology, names: [&str; N]) -> [NodeId; N] {
        names.map(|name| topology.add_node(name).unwrap())
    }

    #[test]
    fn two_addresses_are_two_paths() {
        // a = b by two direct links: each address is reached by its own link, whatever the source address.
        let mut topology = Topology::new();
        let [a, b] = nodes(&mut topology, ["a", "b"]);
        let upper = connect(&mut topology, "upper", [a, b]);
        let lower = connect(&mut topology, "lower", [a, b]);
        let routes = Routes::new(&topology);
        let source = topology.address(a, upper, Family::V4).unwrap();
        for link in [upper, lower] {
            let target = topology.interface(b, link).unwrap();
            let via = topology.interface(a, link).unwrap();
            assert_eq!(routes.hop(a, target), Hop::Via(via));
            assert_eq!(routes.hop(b, target), Hop::Here);
            assert_eq!(routes.first_hop(&topology, a, source, target), Some(via));
        }
    }

    #[test]
    fn the_source_address_names_the_interface_where_that_is_no_detour_back() {
        // a - r1 - b and a - r2 - r3 - b, where b is wanted at r1's link: no way through r3 arrives there.
        // a - r1 - c and a - r2 - r3 - c - is the same with c behind one router x.
        let mut topology = Topology::new();
        let [a, r1, r2, r3, x, c] = nodes(&mut topology, ["a", "r1", "r2", "r3", "x", "c"]);
        let a_r1 = connect(&mut topology, "a-r1", [a, r1]);
        let a_r2 = connect(&mut topology, "a-r2", [a, r2]);
        connect(&mut topology, "r1-x", [r1, x]);
        connect(&mut topology, "r2-r3", [r2, r3]);
        connect(&mut topology, "r3-x", [r3, x]);
        let x_c = connect(&mut topology, "x-c", [x, c]);
        let stub = topology.add_node("stub").unwrap();
        let a_stub = connect(&mut topology, "a-stub", [a, stub]);
        let target = topology.interface(c, x_c).unwrap();
        let routes = Routes::new(&topology);
        let hop = |link| {
            let source = topology.address(a, link, Family::V6).unwrap();
            routes.first_hop(&topology, a, source, target)
        };
        assert_eq!(hop(a_r1), Some(topology.interface(a, a_r1).unwrap()));
        assert_eq!(hop(a_r2), Some(topology.interface(a, a_r2).unwrap()));
        // The stub knows no way but back through a.
        assert_eq!(hop(a_stub), Some(topology.interface(a, a_r1).unwrap()));
    }

    #[test]
    fn nodes_behind_the_destination_reach_each_of_its_addresses() {
        // x - b - n: x reaches b's address on the far link through b itself.
        let mut topology = Topology::new();
        let [x, b, n] = nodes(&mut topology, ["x", "b", "n"]);
        let near = connect(&mut topology, "near", [x, b]);
        let far = connect(&mut topology, "far", [b, n]);
        let routes = Routes::new(&topology);
        let target = topology.interface(b, far).unwrap();
        let via = topology.interface(x, near).unwrap();
        assert_eq!(routes.hop(x, target), Hop::Via(via));
    }

    #[test]
    fn islands_are_unreachable_and_given_routes_win() {
        let mut topology = Topology::new();
        let [a, b, c, island] = nodes(&mut topology, ["a", "b", "c", "island"]);
        connect(&mut topology, "a-b", [a, b]);
        let b_c = connect(&mut topology, "b-c", [b, c]);
        let a_c = connect(&mut topology, "a-c", [a, c]);
        let destination = topology.address(c, b_c, Family::V4).unwrap();
        topology.add_route(a, destination, a_c).unwrap();
        let routes = Routes::new(&topology);
        let target = topology.owner(destination).unwrap();
        let via = topology.interface(a, a_c).unwrap();
        assert_eq!(routes.hop(a, target), Hop::Via(via));
        assert_eq!(routes.hop(island, target), Hop::Nowhere);
    }

    /// A direction that comes up and goes down again at one instant is down, whichever of its spans was given first.
    #[test]
    fn a_link_that_goes_down_at_once_again_stays_down() {
        let mut topology = Topology::new();
        let [a, b] = nodes(&mut topology, ["a", "b"]);
        let outages = [(10, 20), (20, 30)].map(|(from, until)| Outage { from, until });
        let link = LinkConfig {
            name: "link".into(),
            between: [a, b],
            forward: DirectionConfig::instant(1).with_outages(outages),
            backward: DirectionConfig::instant(1),
        };
        topology.add_link(link).unwrap();
        topology.routing = Routing::FollowsLinks { after: 0 };
        let mut router = Router::new(&topology);
        let down = |router: &Router| router.lanes_down[0];
        for (now, changes, is_down) in [
            (9, false, false),
            (10, true, true),
            (20, false, true),
            (29, false, true),
            (30, true, false),
        ] {
            assert_eq!(router.follow(&topology, now), changes, "at {now}");
            assert_eq!(down(&router), is_down, "at {now}");
        }
        assert_eq!(router.next_change(), Nanos::MAX);
    }

    /// While the link of an address is down, the other address of its node is no way to it.
    #[test]
    fn an_address_whose_link_is_down_is_not_reached_by_another() {
        let mut topology = Topology::new();
        let [a, b] = nodes(&mut topology, ["a", "b"]);
        let outage = Outage {
            from: 10,
            until: 20,
        };
        let upper = LinkConfig {
            name: "upper".into(),
            between: [a, b],
            forward: DirectionConfig::instant(1).with_outages([outage]),
            backward: DirectionConfig::instant(1),
        };
        let upper = topology.add_link(upper).unwrap();
        let lower = connect(&mut topology, "lower", [a, b]);
        topology.routing = Routing::FollowsLinks { after: 0 };
        let mut router = Router::new(&topology);
        assert!(router.follow(&topology, 10));
        for link in [upper, lower] {
            let target = topology.interface(b, link).unwrap();
            let via = topology.interface(a, link).unwrap();
            assert_eq!(router.routes().hop(a, target), Hop::Via(via));
        }
    }
}
