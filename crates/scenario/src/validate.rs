//! What the types cannot say: names that must exist or differ, counts that must fit, order.

use anabranch_transport::Probe;

mod addresses;
mod chosen;
mod limits;
mod link;
mod measure;
mod names;
mod output;
mod paths;
mod reference;
mod routes;
mod wifi;

use crate::checker::Checker;
use crate::flow::{Flow, Workload};
use crate::measure::{GOODPUT, LINK_PROBES};
use crate::names::NodeName;
use crate::problem::Problem;
use crate::quantity::{Size, Span};
use crate::spec::{Experiment, Spec};
use crate::tree::Node;
use crate::vocabulary::Vocabulary;
use link::check_link;
use measure::check_measures;
use names::{check_flow_name, check_link_name, check_node};

/// The most flows a world has, all members counted: each has two ports of its own.
pub const MOST_FLOWS: u64 = 10_000;

/// Checks a decoded spec against the tree that it was decoded from, and the names in it against a vocabulary.
pub fn validate(spec: &Spec, root: &Node, vocabulary: &dyn Vocabulary) -> Vec<Problem> {
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
    limits::check_groups(c, spec);
    for (index, link) in spec.links.iter().enumerate() {
        check_link(c, spec, vocabulary, link, &format!("link.{index}"));
    }
    for (index, node) in spec.nodes.iter().enumerate() {
        addresses::check(c, spec, node, &format!("node.{index}"));
    }
    wifi::check(c, spec, vocabulary);
    routes::check(c, spec);
    let mut members = 0;
    for (index, flow) in spec.flows.iter().enumerate() {
        check_flow(c, spec, vocabulary, flow, &format!("flow.{index}"));
        members += u64::from(flow.count.0);
        if members > MOST_FLOWS {
            let message = format!(
                "found {members} members of flows up to here; a world holds at most {MOST_FLOWS}"
            );
            c.problem(&format!("flow.{index}.count"), message);
            break;
        }
    }
    check_measures(c, spec, vocabulary, &spec.measures, "measure");
    for (index, experiment) in spec.experiments.iter().enumerate() {
        check_experiment(
            c,
            spec,
            vocabulary,
            experiment,
            &format!("experiment.{index}"),
        );
    }
    output::check(c, spec);
    reference::check(c, spec);
    if checker.is_content() {
        vocabulary.check_world(&mut checker, spec);
    }
    checker.into_problems()
}

fn check_flow(
    c: &mut Checker<'_>,
    spec: &Spec,
    vocabulary: &dyn Vocabulary,
    flow: &Flow,
    path: &str,
) {
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
    paths::check(c, spec, vocabulary, flow, path);
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
    limits::check_workload(c, spec, flow, path);
    check_transport(c, vocabulary, flow, &format!("{path}.transport"));
    check_largest_message(c, vocabulary, flow, path);
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
    let kind = vocabulary.transport(&flow.transport);
    if kind.is_some_and(|kind| !kind.window) && matches!(flow.workload, Workload::Bulk { .. }) {
        let name = flow.transport.protocol.to_uppercase();
        c.problem(
            &format!("{path}.workload"),
            format!("{name} has no window that could pace a bulk workload; use `cbr` or `on-off`"),
        );
    }
}

/// Checks the names and values of a transport's settings, and that they go together where each is right.
fn check_transport(c: &mut Checker<'_>, vocabulary: &dyn Vocabulary, flow: &Flow, path: &str) {
    let before = c.count();
    flow.transport.check(c, vocabulary.transports(), path);
    if c.count() == before {
        vocabulary.check_transport(c, &flow.transport, path);
    }
}

/// Checks that what a transport cannot carry in one piece is not asked of it.
fn check_largest_message(
    c: &mut Checker<'_>,
    vocabulary: &dyn Vocabulary,
    flow: &Flow,
    path: &str,
) {
    let largest = match &flow.workload {
        Workload::Bulk { message, .. } => *message,
        Workload::Cbr { message, .. } | Workload::OnOff { message, .. } => Some(*message),
        Workload::Trace { messages } => messages.iter().map(|message| message.size).max(),
    };
    let Some(largest) = largest else { return };
    let path = format!("{path}.workload");
    let Some(kind) = vocabulary.transport(&flow.transport) else {
        return;
    };
    match kind.largest_message {
        Some(most) if largest.0 > most => {
            let name = kind.name.to_uppercase();
            let message =
                format!("found a message of {largest}; {name} carries at most {most} B in one");
            c.problem(&path, message);
        }
        None if kind.messages => {
            let buffer = vocabulary.receive_buffer(flow);
            if largest.0 > buffer {
                let message = format!(
                    "found a message of {largest}; the receive buffer of {} could never hold it (set transport.receive_buffer)",
                    Size(buffer)
                );
                c.problem(&path, message);
            }
        }
        _ => {}
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

fn check_experiment(
    c: &mut Checker<'_>,
    spec: &Spec,
    vocabulary: &dyn Vocabulary,
    experiment: &Experiment,
    path: &str,
) {
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
    check_measures(
        c,
        spec,
        vocabulary,
        &experiment.measures,
        &format!("{path}.measure"),
    );
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
        limits::check_bin(c, spec, experiment, record, &path);
    }
}
