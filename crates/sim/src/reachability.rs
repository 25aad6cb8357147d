//! Reachability: the routes of packets at a given time, without sending any, to check static routes
//! and to explain why packets do not arrive.

use std::net::IpAddr;

use anabranch_transport::Nanos;

use crate::ids::{Direction, LinkId, NodeId};
use crate::ip::HOP_LIMIT;
use crate::router::{Hop, Router};
use crate::topology::Topology;

/// The outcome for a packet that is sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reachability {
    /// The packet arrives, according to routes and links.
    Reachable,
    /// A node has no route to the destination, or no interface has the address.
    NoRoute,
    /// The packet reaches a link that is down in this direction.
    LinkDown,
    /// The packet is in a routing loop until its hop limit is exceeded.
    Loop,
}

/// Routes through a topology, evaluated at non-decreasing times.
pub struct PathFinder<'a> {
    topology: &'a Topology,
    router: Router,
}

impl std::fmt::Debug for PathFinder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PathFinder").finish_non_exhaustive()
    }
}

impl<'a> PathFinder<'a> {
    /// The routes of a topology from which no world has been created yet.
    pub fn new(topology: &'a Topology) -> Self {
        Self {
            topology,
            router: Router::new(topology),
        }
    }

    /// Number of computations of routes to a destination so far, a measure of the work.
    pub fn computed(&self) -> u64 {
        self.router.computed()
    }

    /// The outcome for a packet that `from` sends at `now` from the address `source` to
    /// `destination`. `now` must not be before that of the previous call.
    pub fn find(
        &mut self,
        now: Nanos,
        from: NodeId,
        source: IpAddr,
        destination: IpAddr,
    ) -> Reachability {
        let mut down = false;
        let topology = self.topology;
        let crosses = |lane| down |= is_down(topology, lane, now);
        let passage = self.walk(now, from, source, destination, crosses);
        if down {
            Reachability::LinkDown
        } else {
            passage
        }
    }

    /// The links that such a packet crosses, in order, whether or not they are up; `None` if there
    /// is no route to the destination.
    pub fn links(
        &mut self,
        now: Nanos,
        from: NodeId,
        source: IpAddr,
        destination: IpAddr,
    ) -> Option<Vec<(LinkId, Direction)>> {
        let mut links = Vec::new();
        let crosses = |lane: u32| {
            let direction = Direction::BOTH[lane as usize % 2];
            links.push((LinkId(lane / 2), direction));
        };
        let passage = self.walk(now, from, source, destination, crosses);
        (passage == Reachability::Reachable).then_some(links)
    }

    /// The nodes that such a packet visits, in order, both ends included; `None` if there is no
    /// route to the destination.
    pub fn nodes(
        &mut self,
        now: Nanos,
        from: NodeId,
        source: IpAddr,
        destination: IpAddr,
    ) -> Option<Vec<NodeId>> {
        let interfaces = self.topology.interfaces();
        let mut nodes = Vec::new();
        let crosses = |interface: u32| nodes.push(interfaces[interface as usize].node);
        let passage = self.walk(now, from, source, destination, crosses);
        let target = self.topology.owner(destination)?;
        nodes.push(interfaces[target as usize].node);
        (passage == Reachability::Reachable).then_some(nodes)
    }

    /// Follows a packet from hop to hop by the routes at `now`, independent of the state of links.
    fn walk(
        &mut self,
        now: Nanos,
        from: NodeId,
        source: IpAddr,
        destination: IpAddr,
        mut crosses: impl FnMut(u32),
    ) -> Reachability {
        self.router.follow_lazily(self.topology, now);
        let Some(target) = self.topology.owner(destination) else {
            return Reachability::NoRoute;
        };
        let table = self.router.current_table(self.topology, target);
        let routes = &self.router;
        if routes.hop(from, table) == Hop::Here {
            return Reachability::Reachable;
        }
        let mut next = routes.first_hop(self.topology, from, source, table);
        for _ in 0..HOP_LIMIT {
            let Some(via) = next else {
                return Reachability::NoRoute;
            };
            let sender = routes.sender(via);
            crosses(sender.interface);
            let node = self.topology.interfaces()[sender.far() as usize].node;
            next = match routes.hop(node, table) {
                Hop::Here => return Reachability::Reachable,
                Hop::Via(via) => Some(via),
                Hop::Nowhere => None,
            };
        }
        Reachability::Loop
    }

    /// The times until `until` at which routes may change: the ends of outages, the updates of
    /// routers, and each interval if nodes move.
    pub fn changes(&self, until: Nanos) -> Vec<Nanos> {
        let links = self.topology.links.iter();
        let outages = links.flat_map(|link| [&link.forward, &link.backward]);
        let mut times: Vec<Nanos> = outages
            .flat_map(|direction| direction.outages.iter().map(|outage| outage.until))
            .filter(|until| *until < Nanos::MAX)
            .collect();
        times.extend(self.router.changes(until));
        times.sort_unstable();
        times.dedup();
        times
    }
}

/// Whether an interface cannot send at `now`, because its link is down in that direction.
fn is_down(topology: &Topology, lane: u32, now: Nanos) -> bool {
    let Some(link) = topology.links.get(lane as usize / 2) else {
        return false;
    };
    let direction = if lane.is_multiple_of(2) {
        &link.forward
    } else {
        &link.backward
    };
    let mut outages = direction.outages.iter();
    outages.any(|outage| outage.from <= now && now < outage.until)
}
