//! Given routes of a spec, in the simulator's topology.

use anabranch_scenario::Spec;
use anabranch_scenario::names::{NodeName, member, member_name};
use anabranch_scenario::routes::Route;
use anabranch_sim::{BuildError, Family, LinkId, NodeId, Passage, Topology, Ways};

use super::topology;
use crate::kinds::Standard;

/// Enters the given routes of a spec.
pub fn give(topology: &mut Topology, spec: &Spec, links: &[Vec<LinkId>]) -> Result<(), BuildError> {
    for route in &spec.routes {
        for node in named(topology, spec, &route.node) {
            let via = via(topology, spec, links, route, node)?;
            for to in named(topology, spec, &route.to) {
                if to == node {
                    continue;
                }
                let all: Vec<LinkId> = topology.links().collect();
                for link in all {
                    if let Ok(address) = topology.address(to, link, Family::V4) {
                        topology.add_route(node, address, via)?;
                    }
                }
            }
        }
    }
    Ok(())
}

/// The nodes that a name means: a member, or all of a group.
fn named(topology: &Topology, spec: &Spec, name: &str) -> Vec<NodeId> {
    let (group, one) = NodeName::split(name);
    let count = spec.nodes.iter().find(|node| node.name == group);
    let count = count.map_or(0, |node| node.count.0);
    let members = match one {
        Some(member) => vec![member.index(count)],
        None => (0..count).collect(),
    };
    let names = members
        .iter()
        .map(|index| member_name(group, count, *index));
    names.filter_map(|name| topology.node(&name)).collect()
}

/// The member of the route's link that is at the node.
fn via(
    topology: &Topology,
    spec: &Spec,
    links: &[Vec<LinkId>],
    route: &Route,
    node: NodeId,
) -> Result<LinkId, BuildError> {
    let (name, index) = member(&route.via);
    let link = spec.links.iter().position(|link| link.name == name);
    let members = link.and_then(|link| links.get(link)).into_iter().flatten();
    let mut there = (0..).zip(members).filter(|(number, link)| {
        index.is_none_or(|index| index == *number)
            && topology.address(node, **link, Family::V4).is_ok()
    });
    let found = there.next().map(|(_, link)| *link);
    found.ok_or_else(|| BuildError::NotAtLink {
        link: route.via.clone(),
        node: topology.node_name(node).to_owned(),
    })
}

/// What is wrong with the given routes of a checked spec, and at which key: packets that go in a circle with all links up.
pub fn check(spec: &Spec, kinds: &Standard) -> Option<(String, String)> {
    if spec.routes.is_empty() {
        return None;
    }
    let built = match topology::build(spec, kinds) {
        Ok(built) => built,
        Err(error) => return Some(("route".to_owned(), error.to_string())),
    };
    let topology = &built.topology;
    let mut ways = Ways::new(topology);
    for (index, route) in spec.routes.iter().enumerate() {
        for node in named(topology, spec, &route.node) {
            let links = topology.links();
            let own = links.filter_map(|link| topology.address(node, link, Family::V4).ok());
            let own = own.into_iter().next()?;
            for to in named(topology, spec, &route.to) {
                for link in topology.links() {
                    let Ok(address) = topology.address(to, link, Family::V4) else {
                        continue;
                    };
                    if ways.find(0, node, own, address) == Passage::Circle {
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
