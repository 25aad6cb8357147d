//! Lean spec: a spec without the parts that are equal at all points of an experiment, which are
//! tables, figures, claims, other experiments and lists of sweeps. These parts are checked only at
//! the first point, because copying and decoding them at every point would take most of the time.

use std::collections::BTreeSet;
use std::fmt::Write;

use anabranch_scenario::Spec;
use anabranch_scenario::substitute::mentions;
use anabranch_scenario::tree::{NodeValue, SpecNode, TableEntry};

use super::RUN_SECTIONS;
use crate::kinds::Standard;

/// Sections of the lean spec, in addition to [`RUN_SECTIONS`].
const KEPT: &[&str] = &["title", "parameters", "profiles", "experiment"];
/// Keys of the other experiments that are kept, because all durations are checked together.
const OF_OTHERS: &[&str] = &["id", "duration"];

/// Lean spec of an experiment.
pub(crate) struct Lean {
    /// Tree of the lean spec.
    pub root: SpecNode,
    /// Whether the omitted parts are equal at all points.
    pub is_enough: bool,
}

impl Lean {
    /// Builds the lean spec of the experiment with this index.
    pub fn of(root: &SpecNode, index: usize) -> Self {
        let mut lean = SpecNode {
            place: root.place.clone(),
            value: NodeValue::Table(Vec::new()),
        };
        if let NodeValue::Table(entries) = &mut lean.value {
            let kept = root.entries().iter().filter(|entry| is_kept(&entry.key));
            entries.extend(kept.cloned());
        }
        if let Some(NodeValue::Array(items)) = lean.get_mut("experiment").map(|it| &mut it.value) {
            for (number, item) in items.iter_mut().enumerate() {
                if let NodeValue::Table(entries) = &mut item.value {
                    entries.retain(|entry| match number == index {
                        true => entry.key != "sweep",
                        false => OF_OTHERS.contains(&entry.key.as_str()),
                    });
                }
            }
        }
        Self {
            root: lean,
            is_enough: is_enough(root, index),
        }
    }
}

fn is_kept(key: &str) -> bool {
    RUN_SECTIONS.contains(&key) || KEPT.contains(&key)
}

/// Whether the omitted parts are equal at all points: no sweep sets one of their keys, or a
/// parameter that they mention.
fn is_enough(root: &SpecNode, index: usize) -> bool {
    let parameters = root
        .get("parameters")
        .map(SpecNode::entries)
        .unwrap_or_default();
    let experiments = root
        .get("experiment")
        .map(SpecNode::items)
        .unwrap_or_default();
    let mut names = BTreeSet::new();
    for key in experiments.get(index).map(swept).unwrap_or_default() {
        let mut segments = key.split('.');
        match segments.next() {
            _ if parameters.iter().any(|entry| entry.key == key) => {
                names.insert(key);
            }
            Some("parameters") => names.extend(segments.next()),
            Some(section) if section != "experiment" && is_kept(section) => {}
            _ => return false,
        }
    }
    let mentions_any =
        |node: &SpecNode, names: &BTreeSet<&str>| names.iter().any(|name| mentions(node, name));
    // A parameter also differs between points if it mentions a parameter that differs.
    loop {
        let more = parameters.iter().filter(|entry| {
            !names.contains(entry.key.as_str()) && mentions_any(&entry.node, &names)
        });
        let more: Vec<&TableEntry> = more.collect();
        if more.is_empty() {
            break;
        }
        names.extend(more.iter().map(|entry| entry.key.as_str()));
    }
    let left_out = root.entries().iter().filter(|entry| !is_kept(&entry.key));
    let others = experiments.iter().enumerate();
    let others = others.filter(|(number, _)| *number != index);
    let mut left_out = left_out
        .map(|entry| &entry.node)
        .chain(others.map(|(_, item)| item));
    !left_out.any(|node| mentions_any(node, &names))
}

/// Keys that the sweeps of an experiment set.
fn swept(experiment: &SpecNode) -> BTreeSet<&str> {
    let sweeps = experiment
        .get("sweep")
        .map(SpecNode::items)
        .unwrap_or_default();
    let mut keys = BTreeSet::new();
    for sweep in sweeps {
        keys.extend(sweep.get("parameter").and_then(SpecNode::text));
        let points = sweep.get("points").map(SpecNode::items).unwrap_or_default();
        let listed = points.iter().flat_map(SpecNode::entries);
        let listed = listed.filter(|entry| entry.key != "x");
        keys.extend(listed.map(|entry| entry.key.as_str()));
    }
    keys
}

/// Facts of a point's spec with which the omitted parts are checked: names, numbers of members,
/// kinds of transports, metrics, records and durations. If the facts are equal at two points, one
/// check of these parts is valid for both.
pub(crate) fn facts(spec: &Spec, index: usize, kinds: &Standard) -> String {
    let mut text = String::new();
    let mut add = |part: &dyn std::fmt::Debug| {
        // Writing to a string never fails.
        let _ = writeln!(text, "{part:?}");
    };
    for node in &spec.nodes {
        add(&(&node.name, node.count.0));
    }
    for link in &spec.links {
        add(&(&link.name, &link.between));
    }
    for cell in &spec.cells {
        add(&(&cell.name, cell.nodes().collect::<Vec<_>>()));
    }
    for flow in &spec.flows {
        let kind = kinds.transports.kind(&flow.transport);
        add(&(&flow.name, flow.count.0, kind.map(|kind| kind.title())));
    }
    add(&spec.measures);
    add(&spec.world.duration);
    if let Some(own) = spec.experiments.get(index) {
        add(&(&own.id, &own.measures, &own.records, own.duration));
    }
    text
}
