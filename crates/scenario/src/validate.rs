//! Checks of a decoded spec beyond its types: names exist and are unique, counts match, times are
//! in order.

mod addresses;
mod claim;
mod constellation;
mod kind_choice;
pub mod limits;
mod link;
mod measure;
mod names;
mod output;
mod paths;
mod proxy;
mod reference;
mod routes;
mod source;
mod units;
mod unused_keys;
mod wifi;

use crate::checker::Checker;
use crate::diagnostic::Diagnostic;
use crate::flow::Flow;
use crate::kind_choice::KindFamily;
use crate::kind_families::Workloads;
use crate::measure::{CONSTELLATION_PROBES, LINK_PROBES};
use crate::names::{MemberSelection, NodeName};
use crate::quantity::TimeSpan;
use crate::spec::{Experiment, Record, Spec};
use crate::tree::SpecNode;
use crate::vocabulary::Vocabulary;
use anabranch_transport::Probe;
use link::check_link;
use measure::check_measures;
use names::{check_flow_name, check_link_name, check_node};

/// Maximum number of flows in a world, including all members of groups, because each flow uses two
/// ports.
pub const MAX_FLOWS: u64 = 10_000;

/// Checks a decoded spec, and checks that a vocabulary contains the names in it. `root` is the tree
/// from which it was decoded, for source positions.
pub fn validate(spec: &Spec, root: &SpecNode, vocabulary: &dyn Vocabulary) -> Vec<Diagnostic> {
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
    if spec.world.duration == TimeSpan(0) {
        c.problem(
            "world.duration",
            "found a duration of 0; nothing would happen",
        );
    }
    if spec.nodes.is_empty() && spec.constellations.is_empty() && root.get("node").is_none() {
        c.problem("", "the key `node` is missing");
    }
    check_names(c, spec);
    limits::check_groups(c, spec);
    for (index, link) in spec.links.iter().enumerate() {
        check_link(c, spec, vocabulary, link, &format!("link.{index}"));
    }
    for (index, node) in spec.nodes.iter().enumerate() {
        addresses::check(c, spec, node, &format!("node.{index}"));
        proxy::check(c, vocabulary, node, &format!("node.{index}.proxy"));
    }
    wifi::check(c, spec, vocabulary);
    constellation::check(c, spec, vocabulary);
    routes::check(c, spec);
    check_flows(c, spec, vocabulary);
    check_measures(c, spec, vocabulary, &spec.measures, &[], "measure");
    for (index, experiment) in spec.experiments.iter().enumerate() {
        check_experiment(
            c,
            spec,
            vocabulary,
            experiment,
            &format!("experiment.{index}"),
        );
    }
    output::check(c, spec, vocabulary);
    claim::check(c, spec, vocabulary);
    reference::check(c, spec);
    checker.into_problems()
}

/// Checks the name of the spec, and the names of its parts, which must be unique.
fn check_names(c: &mut Checker<'_>, spec: &Spec) {
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
        "claim",
        "id",
        spec.claims.iter().map(|claim| claim.id.as_str()),
    );
    c.distinct(
        "wifi",
        "name",
        spec.cells.iter().map(|cell| cell.name.as_str()),
    );
}

/// Checks each flow, and the total number of members.
fn check_flows(c: &mut Checker<'_>, spec: &Spec, vocabulary: &dyn Vocabulary) {
    let mut members = 0;
    for (index, flow) in spec.flows.iter().enumerate() {
        check_flow(c, spec, vocabulary, flow, &format!("flow.{index}"));
        members += u64::from(flow.count.0);
        if members > MAX_FLOWS {
            let message = format!(
                "found {members} members of flows up to here; a world holds at most {MAX_FLOWS}"
            );
            c.problem(&format!("flow.{index}.count"), message);
            break;
        }
    }
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
            && flow.pairs.is_none()
            && count != 1
            && count != flow.count.0
        {
            c.problem(
                &path,
                format!("{name:?} has {count} members and the flow {}; the counts must be equal, or the node must have 1 member", flow.count.0),
            );
        }
    }
    if flow.pairs.is_some() && flow.matrix.is_empty() {
        // Resolving the pairs has already reported the error.
    } else if flow.from == flow.to && flow.pairs.is_none() {
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
    if flow.stop.is_some() && flow.duration.is_some() {
        c.problem(
            &format!("{path}.duration"),
            "found both `stop` and `duration`; set only one of them",
        );
    }
    if flow.duration == Some(TimeSpan(0)) {
        c.problem(
            &format!("{path}.duration"),
            "found a time of 0; nothing would be offered",
        );
    }
    check_resume(c, flow, path);
    let kinds = vocabulary.kinds(Workloads::NAME);
    kind_choice::check(c, spec, kinds, &flow.workload, &format!("{path}.workload"));
    let transports = vocabulary.transports();
    let path = format!("{path}.transport");
    flow.transport.check(c, &transports, &path);
}

/// Checks the keys of Careful Resume.
fn check_resume(c: &mut Checker<'_>, flow: &Flow, path: &str) {
    let given = [
        ("resume_lifetime", flow.resume_lifetime.is_some()),
        ("resume_max_jump", flow.resume_max_jump.is_some()),
    ];
    for (key, _) in given.iter().filter(|it| it.1 && flow.resume.is_none()) {
        c.problem(
            &format!("{path}.{key}"),
            "found a value; it has no effect without `resume`, the name of a store; leave it out",
        );
    }
    if flow.resume.as_deref() == Some("") {
        c.problem(
            &format!("{path}.resume"),
            "found \"\"; expected the name of a store",
        );
    }
    if flow.resume_lifetime == Some(TimeSpan(0)) {
        c.problem(
            &format!("{path}.resume_lifetime"),
            "found a time of 0; nothing saved would be valid",
        );
    }
}

/// Whether a path of links connects two nodes, if each group is treated as one node.
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
        for constellation in &spec.constellations {
            let grounds = spec.grounds.iter();
            let users = grounds.filter(|ground| ground.uses(&constellation.name));
            let users = users.map(|ground| &ground.name);
            let all: Vec<&String> = users.chain([&constellation.name]).collect();
            if all.contains(&&node) {
                for other in all {
                    if !reached.contains(other) {
                        reached.push(other.clone());
                    }
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
            "found 0; expected 1 or more",
        );
    }
    if experiment.quick_replications == Some(0) {
        c.problem(
            &format!("{path}.quick_replications"),
            "found 0; expected 1 or more",
        );
    }
    if experiment.duration == Some(TimeSpan(0)) {
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
        &spec.measures,
        &format!("{path}.measure"),
    );
    for (index, record) in experiment.records.iter().enumerate() {
        let path = format!("{path}.record.{index}");
        let known: Vec<&str> = match (&record.flow, &record.link, &record.constellation) {
            (None, None, Some(constellation)) => {
                check_constellation_name(c, spec, constellation, &format!("{path}.constellation"));
                CONSTELLATION_PROBES.iter().map(|it| it.name).collect()
            }
            (Some(flow), None, None) => {
                check_flow_name(c, spec, flow, &format!("{path}.flow"));
                vocabulary.probes()
            }
            (None, Some(link), None) => {
                check_link_name(c, spec, link, &format!("{path}.link"));
                LINK_PROBES.iter().map(|probe| probe.name).collect()
            }
            _ => {
                c.problem(&path, "needs one of `flow`, `link` and `constellation`");
                continue;
            }
        };
        if record.probes.is_empty() {
            c.problem(
                &format!("{path}.probes"),
                "found no probe; nothing would be recorded",
            );
        }
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
        check_told(c, spec, vocabulary, record, &path);
        limits::check_bin(c, spec, experiment, record, &path);
    }
}

/// Checks that a constellation exists.
fn check_constellation_name(c: &mut Checker<'_>, spec: &Spec, name: &str, path: &str) {
    let known = spec.constellations.iter().map(|it| it.name.as_str());
    if !known.clone().any(|it| it == name) {
        let message = format!("found {name:?}, but no constellation has this name");
        c.not_among(path, &message, name, known);
    }
}

/// Checks that the transport of a recorded flow has the recorded probes.
fn check_told(
    c: &mut Checker<'_>,
    spec: &Spec,
    vocabulary: &dyn Vocabulary,
    record: &Record,
    path: &str,
) {
    let group = record
        .flow
        .as_deref()
        .map(|it| MemberSelection::parse(it).group);
    let flow = spec.flows.iter().find(|it| group == Some(&*it.name));
    let Some(kind) = flow.and_then(|flow| vocabulary.transport(&flow.transport)) else {
        return;
    };
    for (index, name) in record.probes.iter().enumerate() {
        let probe = Probe::from_name(name);
        if let Some(message) = probe.and_then(|probe| kind.refuses(probe)) {
            c.problem(&format!("{path}.probes.{index}"), message);
        }
    }
}
