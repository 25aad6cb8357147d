//! Names that must be there.

use crate::checker::Checker;
use crate::names::{NodeName, count_of, member};
use crate::spec::Spec;

fn node_names(spec: &Spec) -> impl Iterator<Item = &str> {
    spec.nodes.iter().map(|node| node.name.as_str())
}

/// Checks that a node exists, and tells its count.
pub fn check_node(c: &mut Checker<'_>, spec: &Spec, name: &str, path: &str) -> Option<u32> {
    let (group, member) = NodeName::split(name);
    let members = count_of(spec, group);
    if let (Some(NodeName::Number(index)), Some(members)) = (member, members)
        && index >= members
    {
        c.problem(
            path,
            format!("found {name:?}; the node has {members} members, counted from 0"),
        );
    }
    let count = NodeName::count(spec, name);
    if count.is_none() {
        c.not_among(
            path,
            &format!("found {name:?}, but no node has this name"),
            group,
            node_names(spec),
        );
    }
    count
}

/// Checks that a flow exists, and its member.
pub fn check_flow_name(c: &mut Checker<'_>, spec: &Spec, name: &str, path: &str) {
    let (group, index) = member(name);
    match spec.flows.iter().find(|flow| flow.name == group) {
        None => {
            let known = spec.flows.iter().map(|flow| flow.name.as_str());
            c.not_among(
                path,
                &format!("found {name:?}, but no flow has this name"),
                name,
                known,
            );
        }
        Some(flow) if index.is_some_and(|index| index >= flow.count.0) => {
            c.problem(
                path,
                format!(
                    "found {name:?}; the flow has {} members, counted from 0",
                    flow.count.0
                ),
            );
        }
        Some(_) => {}
    }
}

/// Checks that a link exists.
pub fn check_link_name(c: &mut Checker<'_>, spec: &Spec, name: &str, path: &str) {
    let (group, _) = member(name);
    if !spec.carriers().any(|link| link.name() == group) {
        let known = spec.carriers().map(|link| link.name());
        c.not_among(
            path,
            &format!("found {name:?}, but no link has this name"),
            name,
            known,
        );
    }
}
