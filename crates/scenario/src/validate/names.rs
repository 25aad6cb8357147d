//! Checks of references to nodes, flows and links by name.

use crate::checker::Checker;
use crate::names::{MemberSelection, NodeName, carrier_members, count_of};
use crate::spec::Spec;

fn node_names(spec: &Spec) -> impl Iterator<Item = &str> {
    spec.groups().map(|(name, _)| name)
}

/// List of a group's members for a message.
pub fn members_of(group: &str, members: u32) -> String {
    match members {
        1 => format!("1 member, {group}[0]"),
        _ => format!("{members} members, {group}[0] to {group}[{}]", members - 1),
    }
}

/// Checks that a node exists. Returns the number of nodes that the name selects: one, or several
/// members of a group.
pub fn check_node(c: &mut Checker<'_>, spec: &Spec, name: &str, path: &str) -> Option<u32> {
    let parsed = MemberSelection::parse(name);
    let group = parsed.group;
    if let Some(members) = count_of(spec, group).filter(|&members| !parsed.fits(members)) {
        c.problem(
            path,
            format!(
                "found {name:?}; the node has {}",
                members_of(group, members)
            ),
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

/// Checks that a flow exists, and also the member if the name contains one.
pub fn check_flow_name(c: &mut Checker<'_>, spec: &Spec, name: &str, path: &str) {
    let parsed = MemberSelection::parse(name);
    match spec.flows.iter().find(|flow| flow.name == parsed.group) {
        None => {
            let known = spec.flows.iter().map(|flow| flow.name.as_str());
            c.not_among(
                path,
                &format!("found {name:?}, but no flow has this name"),
                name,
                known,
            );
        }
        Some(flow) if !parsed.fits(flow.count.0) => {
            c.problem(
                path,
                format!(
                    "found {name:?}; the flow has {}",
                    members_of(parsed.group, flow.count.0)
                ),
            );
        }
        Some(_) => {}
    }
}

/// Checks that a link exists.
pub fn check_link_name(c: &mut Checker<'_>, spec: &Spec, name: &str, path: &str) {
    let parsed = MemberSelection::parse(name);
    let carrier = spec.carriers().find(|link| link.name() == parsed.group);
    if let Some(carrier) = carrier {
        let members = carrier_members(spec, carrier);
        if !parsed.fits(members) {
            let message = format!(
                "found {name:?}; the link has {}",
                members_of(parsed.group, members)
            );
            c.problem(path, message);
        }
    } else {
        let known = spec.carriers().map(|link| link.name());
        c.not_among(
            path,
            &format!("found {name:?}, but no link has this name"),
            name,
            known,
        );
    }
}
