//! Checks of interface addresses.

use std::net::IpAddr;

use crate::checker::Checker;
use crate::names::{NodeName, member};
use crate::spec::Spec;
use crate::validate::names::members_of;
use crate::world::{Link, Node};

/// Checks the addresses of a node: each must belong to one of its interfaces, and no address may be
/// used twice.
pub(super) fn check(c: &mut Checker<'_>, spec: &Spec, node: &Node, path: &str) {
    if node.addresses.is_empty() {
        return;
    }
    let path = format!("{path}.addresses");
    if node.count.0 > 1 {
        let message = format!(
            "{:?} is a group of {}; addresses are of one node",
            node.name, node.count.0
        );
        c.problem(&path, message);
        return;
    }
    let ends_here = |link: &&Link| {
        let mut ends = link.between.iter();
        ends.any(|end| NodeName::split(end).0 == node.name)
    };
    let interfaces: Vec<&Link> = spec.links.iter().filter(ends_here).collect();
    for (name, addresses) in &node.addresses {
        let path = format!("{path}.{name}");
        let (group, index) = member(name);
        let Some(link) = interfaces.iter().find(|link| link.name == group) else {
            let message = format!(
                "found {name:?}, but no link of this name ends at {:?}",
                node.name
            );
            let known = interfaces.iter().map(|link| link.name.as_str());
            c.not_among(&path, &message, name, known);
            continue;
        };
        let ends = link
            .between
            .iter()
            .filter_map(|end| NodeName::count(spec, end));
        let members = ends.max().unwrap_or(1);
        match index {
            None if members > 1 => c.problem(
                &path,
                format!("{name:?} has {members} members here; say which, as `\"{name}[0]\"`"),
            ),
            Some(index) if index >= members => c.problem(
                &path,
                format!(
                    "found {name:?}; the link has {}",
                    members_of(group, members)
                ),
            ),
            _ => {}
        }
        for address in addresses.iter() {
            if let Some(other) = owner(spec, node, name, address) {
                c.problem(
                    &path,
                    format!("{address} is already the address of {other}"),
                );
            }
        }
    }
}

/// An earlier interface to which the spec assigns the same address.
fn owner(spec: &Spec, node: &Node, link: &str, address: IpAddr) -> Option<String> {
    let all = spec.nodes.iter().flat_map(|other| {
        let interfaces = other.addresses.iter();
        interfaces.map(move |(name, addresses)| (other, name, addresses))
    });
    let before = all.take_while(|(other, name, _)| !(other.name == node.name && *name == link));
    let mut taken = before.filter(|(_, _, addresses)| addresses.iter().any(|a| a == address));
    taken
        .next()
        .map(|(other, name, _)| format!("{:?} at {name:?}", other.name))
}
