//! What the types cannot say: names that must exist or differ, counts that must fit, order.

use anabranch_transport::Probe;

use super::problem::Problem;
use super::quantity::{Size, Span};
use super::tree::Node;
use super::{Experiment, Flow, Protocol, Spec, Workload};

pub use super::checker::Checker;
use super::validate_link::check_link;
use super::validate_measure::check_measures;

/// Probes of a link, beside those of a flow ([`Probe`]).
pub const LINK_PROBES: &[&str] = &["throughput", "queue", "drop"];
/// The probe of a flow that is no probe of its transport: bit/s in bins that reached the receiving application.
pub const GOODPUT: &str = "goodput";
/// The most payload of a UDP datagram over IPv4: what is left of 65535 bytes by two headers.
const UDP_LARGEST: u64 = 65_535 - 20 - 8;

/// The most flows a world has, all members counted: each has two ports of its own.
pub const MOST_FLOWS: u64 = 10_000;

/// Checks a decoded spec against the tree that it was decoded from.
pub fn validate(spec: &Spec, root: &Node) -> Vec<Problem> {
    let mut checker = Checker::new(root);
    let c = &mut checker;
    if spec.anabranch != 1 {
        c.problem(
            "anabranch",
            format!(
                "found {}; this program reads version 1 of the grammar",
                spec.anabranch
            ),
        );
    }
    if spec.world.duration == Span(0) {
        c.problem(
            "world.duration",
            "found a duration of 0; nothing would happen",
        );
    }
    c.name("name", &spec.name);
    c.distinct(
        "node",
        "name",
        spec.nodes.iter().map(|node| node.name.as_str()),
    );
    c.distinct(
        "link",
        "name",
        spec.links.iter().map(|link| link.name.as_str()),
    );
    c.distinct(
        "flow",
        "name",
        spec.flows.iter().map(|flow| flow.name.as_str()),
    );
    c.distinct(
        "experiment",
        "id",
        spec.experiments
            .iter()
            .map(|experiment| experiment.id.as_str()),
    );
    c.distinct(
        "derived",
        "id",
        spec.derived.iter().map(|derived| derived.id()),
    );
    c.distinct(
        "table",
        "id",
        spec.tables.iter().map(|table| table.id.as_str()),
    );
    c.distinct(
        "figure",
        "id",
        spec.figures.iter().map(|figure| figure.id.as_str()),
    );
    c.distinct(
        "wifi",
        "name",
        spec.cells.iter().map(|cell| cell.name.as_str()),
    );
    for (index, link) in spec.links.iter().enumerate() {
        check_link(c, spec, link, &format!("link.{index}"));
    }
    for (index, node) in spec.nodes.iter().enumerate() {
        super::addresses::check(c, spec, node, &format!("node.{index}"));
    }
    super::wifi::check(c, spec);
    let mut members = 0;
    for (index, flow) in spec.flows.iter().enumerate() {
        check_flow(c, spec, flow, &format!("flow.{index}"));
        members += u64::from(flow.count.0);
        if members > MOST_FLOWS {
            let message = format!(
                "found {members} members of flows up to here; a world holds at most {MOST_FLOWS}"
            );
            c.problem(&format!("flow.{index}.count"), message);
            break;
        }
    }
    check_measures(c, spec, &spec.measures, "measure");
    for (index, experiment) in spec.experiments.iter().enumerate() {
        check_experiment(c, spec, experiment, &format!("experiment.{index}"));
    }
    super::validate_output::check(c, spec);
    if checker.is_content()
        && let Some((path, error)) = crate::world::homes::check(spec)
    {
        checker.problem(&path, error.to_string());
    }
    checker.into_problems()
}

/// Which member of a group of nodes a name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeName {
    /// `satellite[3]`.
    Number(u32),
    /// `satellite[last]`.
    Last,
}

impl NodeName {
    /// Splits `satellite[last]` into the group and the member.
    pub fn split(name: &str) -> (&str, Option<NodeName>) {
        if let Some(group) = name.strip_suffix("[last]") {
            return (group, Some(NodeName::Last));
        }
        let (group, index) = member(name);
        (group, index.map(NodeName::Number))
    }

    /// The member's number in a group of `count`.
    pub fn index(self, count: u32) -> u32 {
        match self {
            NodeName::Number(index) => index,
            NodeName::Last => count.saturating_sub(1),
        }
    }

    /// How many nodes a name means: the members of a group, or one.
    pub fn count(spec: &Spec, name: &str) -> Option<u32> {
        let (group, member) = Self::split(name);
        let count = count_of(spec, group)?;
        Some(if member.is_some() { 1 } else { count })
    }
}

fn node_names(spec: &Spec) -> impl Iterator<Item = &str> {
    spec.nodes.iter().map(|node| node.name.as_str())
}

fn count_of(spec: &Spec, node: &str) -> Option<u32> {
    spec.nodes
        .iter()
        .find(|known| known.name == node)
        .map(|known| known.count.0)
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

fn check_flow(c: &mut Checker<'_>, spec: &Spec, flow: &Flow, path: &str) {
    for (end, name) in [("from", &flow.from), ("to", &flow.to)] {
        let path = format!("{path}.{end}");
        if let Some(count) = check_node(c, spec, name, &path)
            && count != 1
            && count != flow.count.0
        {
            c.problem(
                &path,
                format!("{name:?} has {count} members and the flow {}; the counts must be equal, or the node's 1", flow.count.0),
            );
        }
    }
    if flow.from == flow.to {
        c.problem(
            &format!("{path}.to"),
            format!("the flow runs from {:?} to itself", flow.from),
        );
    } else if NodeName::count(spec, &flow.from).is_some()
        && NodeName::count(spec, &flow.to).is_some()
        && !joined(spec, &flow.from, &flow.to)
    {
        c.problem(
            &format!("{path}.to"),
            format!("no links lead from {:?} to {:?}", flow.from, flow.to),
        );
    }
    super::homes::check(c, spec, flow, path);
    if flow.stop.is_some() && flow.lasts.is_some() {
        c.problem(
            &format!("{path}.lasts"),
            "found both `stop` and `lasts`; a flow has one of them",
        );
    }
    if flow.lasts == Some(Span(0)) {
        c.problem(
            &format!("{path}.lasts"),
            "found a time of 0; nothing would be offered",
        );
    }
    let message = match &flow.workload {
        Workload::Bulk { message, .. } => *message,
        Workload::Cbr { message, .. } | Workload::OnOff { message, .. } => Some(*message),
        Workload::Trace { messages } => messages.iter().map(|message| message.size).min(),
    };
    if message.is_some_and(|message| message.0 == 0) {
        c.problem(
            &format!("{path}.workload"),
            "found a message of 0 B; a message holds at least 1 B",
        );
    }
    crate::agent::settings::check(c, &flow.transport, &format!("{path}.transport"));
    check_largest_message(c, flow, path);
    if let Workload::Trace { messages } = &flow.workload {
        for (index, pair) in messages.windows(2).enumerate() {
            if pair[1].at < pair[0].at {
                let message = format!(
                    "found \"{}\" after \"{}\"; messages stand in the order of time",
                    pair[1].at, pair[0].at
                );
                c.problem(
                    &format!("{path}.workload.messages.{}.at", index + 1),
                    message,
                );
            }
        }
    }
    if let (Protocol::Udp {}, Workload::Bulk { .. }) = (&flow.transport, &flow.workload) {
        c.problem(
            &format!("{path}.workload"),
            "UDP has no window that could pace a bulk workload; use `cbr` or `on-off`",
        );
    }
}

/// Checks that what a transport cannot carry in one piece is not asked of it.
fn check_largest_message(c: &mut Checker<'_>, flow: &Flow, path: &str) {
    let largest = match &flow.workload {
        Workload::Bulk { message, .. } => *message,
        Workload::Cbr { message, .. } | Workload::OnOff { message, .. } => Some(*message),
        Workload::Trace { messages } => messages.iter().map(|message| message.size).max(),
    };
    let Some(largest) = largest else { return };
    let path = format!("{path}.workload");
    match &flow.transport {
        Protocol::Sctp { .. } => {
            let buffer = crate::agent::settings::sctp(&flow.transport, flow.ip).receive_buffer;
            if largest.0 > buffer.into() {
                let message = format!(
                    "found a message of {largest}; the receive buffer of {} could never hold it (set transport.receive_buffer)",
                    Size(buffer.into())
                );
                c.problem(&path, message);
            }
        }
        Protocol::Udp {} if largest.0 > UDP_LARGEST => {
            c.problem(
                &path,
                format!("found a message of {largest}; UDP carries at most {UDP_LARGEST} B in one"),
            );
        }
        Protocol::Udp {} | Protocol::Tcp { .. } => {}
    }
}

/// Whether links lead from one node to another, groups taken as one.
fn joined(spec: &Spec, from: &str, to: &str) -> bool {
    let group = |name: &'_ str| NodeName::split(name).0.to_owned();
    let (from, to) = (group(from), group(to));
    let mut reached = vec![from];
    let mut next = 0;
    while let Some(node) = reached.get(next).cloned() {
        next += 1;
        for link in &spec.links {
            let [a, b] = [&link.between[0], &link.between[1]].map(|name| group(name));
            for (here, there) in [(&a, &b), (&b, &a)] {
                if *here == node && !reached.contains(there) {
                    reached.push(there.clone());
                }
            }
        }
        for cell in &spec.cells {
            if cell.nodes().any(|name| group(name) == node) {
                for other in cell.nodes().map(group) {
                    if !reached.contains(&other) {
                        reached.push(other);
                    }
                }
            }
        }
    }
    reached.contains(&to)
}

/// Splits `flow[1]` into the group and the member.
pub fn member(name: &str) -> (&str, Option<u32>) {
    match name.strip_suffix(']').and_then(|name| name.split_once('[')) {
        Some((group, index)) => match index.parse() {
            Ok(index) => (group, Some(index)),
            Err(_) => (name, None),
        },
        None => (name, None),
    }
}

pub(super) fn check_flow_name(c: &mut Checker<'_>, spec: &Spec, name: &str, path: &str) {
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

pub(super) fn check_link_name(c: &mut Checker<'_>, spec: &Spec, name: &str, path: &str) {
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

fn check_experiment(c: &mut Checker<'_>, spec: &Spec, experiment: &Experiment, path: &str) {
    if experiment.replications == 0 {
        c.problem(
            &format!("{path}.replications"),
            "found 0; at least 1 replication is run",
        );
    }
    if experiment.quick_replications == Some(0) {
        c.problem(
            &format!("{path}.quick_replications"),
            "found 0; at least 1 replication is run",
        );
    }
    if experiment.duration == Some(Span(0)) {
        c.problem(
            &format!("{path}.duration"),
            "found a duration of 0; nothing would happen",
        );
    }
    check_measures(c, spec, &experiment.measures, &format!("{path}.measure"));
    for (index, record) in experiment.records.iter().enumerate() {
        let path = format!("{path}.record.{index}");
        let known: Vec<&str> = match (&record.flow, &record.link) {
            (Some(flow), None) => {
                check_flow_name(c, spec, flow, &format!("{path}.flow"));
                let probes = Probe::ALL.iter().map(|probe| probe.name());
                probes.chain([GOODPUT]).collect()
            }
            (None, Some(link)) => {
                check_link_name(c, spec, link, &format!("{path}.link"));
                LINK_PROBES.to_vec()
            }
            _ => {
                c.problem(&path, "a record is of a `flow` or of a `link`: one of them");
                continue;
            }
        };
        for (index, probe) in record
            .probes
            .iter()
            .enumerate()
            .filter(|(_, probe)| !known.contains(&probe.as_str()))
        {
            let path = format!("{path}.probes.{index}");
            c.not_among(
                &path,
                &format!("found {probe:?}, but no probe has this name"),
                probe,
                known.iter().copied(),
            );
        }
        if record.bin.is_some_and(|bin| bin.0 == 0) {
            c.problem(
                &format!("{path}.bin"),
                "found a bin of 0; a bin has a width",
            );
        }
    }
}
