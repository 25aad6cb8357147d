//! Reachability: computes the routes of packets at a given time without sending any. It checks
//! static routes, and explains why packets do not arrive.

use std::net::IpAddr;

use anabranch_transport::Nanos;

use crate::ids::{LinkDirection, LinkId, NodeId};
use crate::ip::HOP_LIMIT;
use crate::router::{Hop, Router};
use crate::topology::Topology;

/// The outcome for a packet that is sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reachability {
    /// Routes and link states let the packet reach its destination.
    Reachable,
    /// A node on the path has no route to the destination, or no interface has the destination
    /// address.
    NoRoute,
    /// The path contains a link that is down in this direction.
    LinkDown,
    /// The packet circulates in a routing loop until its hop limit is exceeded.
    Loop,
}

/// Computes the paths of packets through a topology, at non-decreasing times.
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
    /// Creates a path finder for a topology from which no world has been created yet.
    pub fn new(topology: &'a Topology) -> Self {
        Self {
            topology,
            router: Router::new(topology),
        }
    }

    /// Number of routing tables computed so far, as a measure of the work.
    pub fn computed(&self) -> u64 {
        self.router.computed()
    }

    /// Outcome for a packet that `from` sends at `now` from the address `source` to `destination`.
    /// `now` must not decrease from call to call.
    pub fn find(
        &mut self,
        now: Nanos,
        from: NodeId,
        source: IpAddr,
        destination: IpAddr,
    ) -> Reachability {
        let mut down = false;
        let topology = self.topology;
        let crosses = |simplex_link| down |= is_down(topology, simplex_link, now);
        let passage = self.walk(now, from, source, destination, crosses);
        if down {
            Reachability::LinkDown
        } else {
            passage
        }
    }

    /// Links that a packet as in [`Self::find`] crosses, in order, whether or not they are up.
    /// `None` if the packet does not reach the destination.
    pub fn links(
        &mut self,
        now: Nanos,
        from: NodeId,
        source: IpAddr,
        destination: IpAddr,
    ) -> Option<Vec<(LinkId, LinkDirection)>> {
        let mut links = Vec::new();
        let crosses = |simplex_link: u32| {
            let direction = LinkDirection::BOTH[simplex_link as usize % 2];
            links.push((LinkId(simplex_link / 2), direction));
        };
        let passage = self.walk(now, from, source, destination, crosses);
        (passage == Reachability::Reachable).then_some(links)
    }

    /// Nodes that a packet as in [`Self::find`] visits, in order, including both ends. `None` if
    /// the packet does not reach the destination.
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

    /// Follows a packet hop by hop along the routes at `now`, whether or not the links are up.
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

    /// Times up to `until` at which routes may change: the ends of outages, updates of routing
    /// tables, and, if nodes move, the start of each interval.
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

/// Whether the interface `simplex_link` cannot send at `now`, because its link is down in this
/// direction.
fn is_down(topology: &Topology, simplex_link: u32, now: Nanos) -> bool {
    let Some(link) = topology.links.get(simplex_link as usize / 2) else {
        return false;
    };
    let direction = if simplex_link.is_multiple_of(2) {
        &link.forward
    } else {
        &link.backward
    };
    let mut outages = direction.outages.iter();
    outages.any(|outage| outage.from <= now && now < outage.until)
}
