//! Static routes of a spec, resolved for the simulator's topology.

use std::net::IpAddr;

use anabranch_scenario::Spec;
use anabranch_scenario::names::{MemberSelection, count_of, member_name};
use anabranch_scenario::routes::Route;
use anabranch_sim::{
    AddressFamily, BuildError, LinkId, NodeId, PathFinder, Reachability, Topology,
};

use super::Built;

/// Resolves the static routes of a spec: node, destination address, and the link to use.
pub fn resolve(built: &Built, spec: &Spec) -> Result<Vec<(NodeId, IpAddr, LinkId)>, BuildError> {
    let topology = &built.topology;
    let mut routes = Vec::new();
    for route in &spec.routes {
        for node in named(topology, spec, &route.node) {
            let via = via(built, spec, route, node)?;
            for to in named(topology, spec, &route.to) {
                if to != node {
                    let all = addresses(topology, to);
                    routes.extend(all.map(|address| (node, address, via)));
                }
            }
        }
    }
    Ok(routes)
}

/// The IPv4 addresses of a node. They are sufficient for routes, because a route to an address of a
/// node applies to both IP versions.
fn addresses(topology: &Topology, node: NodeId) -> impl Iterator<Item = IpAddr> + '_ {
    topology.addresses(node, AddressFamily::V4)
}

/// Nodes that a name selects: a member, a slice, or a whole group.
fn named(topology: &Topology, spec: &Spec, name: &str) -> Vec<NodeId> {
    let name = MemberSelection::parse(name);
    let count = count_of(spec, name.group).unwrap_or(0);
    let names = name
        .range(count)
        .map(|index| member_name(name.group, count, index));
    names.filter_map(|name| topology.node(&name)).collect()
}

/// Link of a route at `node`: the first member of the route's link that ends there.
fn via(built: &Built, spec: &Spec, route: &Route, node: NodeId) -> Result<LinkId, BuildError> {
    let name = MemberSelection::parse(&route.via);
    let link = spec.links.iter().position(|link| link.name == name.group);
    let members = link.and_then(|link| built.links.get(link));
    let members = members.map_or(&[][..], Vec::as_slice);
    let meant = members
        .get(range_within(&name, members.len()))
        .unwrap_or_default();
    let mut there = meant.iter().copied();
    let found = there.find(|link| {
        built
            .topology
            .address(node, *link, AddressFamily::V4)
            .is_ok()
    });
    found.ok_or_else(|| BuildError::NotAtLink {
        link: route.via.clone(),
        node: built.topology.node_name(node).to_owned(),
    })
}

fn range_within(name: &MemberSelection<'_>, count: usize) -> std::ops::Range<usize> {
    let range = name.range(count as u32);
    range.start as usize..range.end as usize
}

/// Checks whether the static routes of a network cause loops while all links are up. Returns the
/// key and the error message of the first loop.
pub fn check(topology: &Topology, spec: &Spec) -> Option<(String, String)> {
    let mut ways = PathFinder::new(topology);
    for (index, route) in spec.routes.iter().enumerate() {
        for node in named(topology, spec, &route.node) {
            let own = addresses(topology, node).next()?;
            for to in named(topology, spec, &route.to) {
                for address in addresses(topology, to) {
                    if ways.find(0, node, own, address) == Reachability::Loop {
                        let (from, to) = (topology.node_name(node), topology.node_name(to));
                        let message = format!(
                            "packets from {from} to {to} go in a circle; a node on the way sends them back"
                        );
                        return Some((format!("route.{index}"), message));
                    }
                }
            }
        }
    }
    None
}
