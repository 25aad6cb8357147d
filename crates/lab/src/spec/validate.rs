//! What the types cannot say: names that must exist or differ, counts that must fit, order.

use std::collections::BTreeMap;

use anabranch_sim::DropReason;
use anabranch_transport::Probe;

use super::measure::Take;
use super::problem::Problem;
use super::quantity::{Amount, Size, Span};
use super::tree::{Node, NodeValue, Place};
use super::{Experiment, Flow, Link, Loss, Metric, Protocol, Spec, Workload};

/// Probes of a link, beside those of a flow ([`Probe`]).
pub const LINK_PROBES: &[&str] = &["throughput", "queue", "drop"];
/// The probe of a flow that is no probe of its transport: bit/s in bins that reached the receiving application.
pub const GOODPUT: &str = "goodput";
/// The most payload of a UDP datagram over IPv4: what is left of 65535 bytes by two headers.
const UDP_LARGEST: u64 = 65_535 - 20 - 8;

/// The most flows a world has, all members counted: each has two ports of its own.
pub const MOST_FLOWS: u64 = 10_000;

/// Collects problems and finds their places in the resolved tree.
pub struct Checker<'a> {
    root: &'a Node,
    problems: Vec<Problem>,
}

impl<'a> Checker<'a> {
    /// A checker for a spec decoded from `root`.
    pub fn new(root: &'a Node) -> Self {
        Self {
            root,
            problems: Vec::new(),
        }
    }

    /// What was found.
    pub fn into_problems(self) -> Vec<Problem> {
        self.problems
    }

    /// Notes a problem at a path of keys and indices: `link.2.between.1`. A path that the file does not have (a
    /// default) is placed at the nearest part that it has.
    pub fn problem(&mut self, path: &str, message: impl Into<String>) {
        let (place, key) = self.locate(path);
        self.problems.push(Problem::new(place, key, message));
    }

    /// The same, with what is allowed instead of `found`.
    pub fn not_among<'n>(
        &mut self,
        path: &str,
        message: &str,
        found: &str,
        allowed: impl IntoIterator<Item = &'n str>,
    ) {
        let (place, key) = self.locate(path);
        self.problems
            .push(Problem::new(place, key, message).allowed(found, allowed));
    }

    /// Whether nothing was found.
    pub fn is_content(&self) -> bool {
        self.problems.is_empty()
    }

    fn locate(&self, path: &str) -> (Place, String) {
        let mut node = self.root;
        let mut key = String::new();
        for segment in path.split('.').filter(|segment| !segment.is_empty()) {
            let next = match &node.value {
                NodeValue::Table(_) => node
                    .get(segment)
                    .map(|next| (next, Node::key_path(&key, segment))),
                NodeValue::Array(items) => segment.parse().ok().and_then(|index: usize| {
                    items
                        .get(index)
                        .map(|item| (item, Node::item_path(&key, index, item)))
                }),
                _ => None,
            };
            match next {
                Some((next, path)) => (node, key) = (next, path),
                None => break,
            }
        }
        (node.place.clone(), key)
    }

    fn distinct<'n>(&mut self, section: &str, field: &str, names: impl Iterator<Item = &'n str>) {
        let mut seen = BTreeMap::new();
        for (index, name) in names.enumerate() {
            let path = format!("{section}.{index}.{field}");
            if let Some(first) = seen.insert(name, index) {
                self.problem(
                    &path,
                    format!(
                        "found {name:?} twice in `{section}` (entries {} and {})",
                        first + 1,
                        index + 1
                    ),
                );
            }
            self.name(&path, name);
        }
    }

    fn name(&mut self, path: &str, name: &str) {
        let good = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || !name.chars().all(good) || name.starts_with('-') {
            self.problem(
                path,
                format!("found {name:?}; a name is made of letters, digits, `-` and `_`"),
            );
        }
    }
}

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
        && let Some((flow, error)) = crate::world::homes::check(spec)
    {
        checker.problem(&format!("flow.{flow}.paths"), error.to_string());
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

fn check_link(c: &mut Checker<'_>, spec: &Spec, link: &Link, path: &str) {
    let first = check_node(c, spec, &link.between[0], &format!("{path}.between.0"));
    let second = check_node(c, spec, &link.between[1], &format!("{path}.between.1"));
    if let (Some(first), Some(second)) = (first, second) {
        if link.between[0] == link.between[1] {
            if first == 1 {
                c.problem(
                    &format!("{path}.between"),
                    format!(
                        "joins {:?} with itself; a group's chain has at least two members",
                        link.between[0]
                    ),
                );
            }
        } else if first != second && first != 1 && second != 1 {
            let [a, b] = &link.between;
            let message = format!(
                "joins {first} members of {a:?} with {second} of {b:?}; the counts must be equal, or one of them 1"
            );
            c.problem(&format!("{path}.between"), message);
        }
    }
    for (index, [from, to]) in link.down.iter().enumerate() {
        let path = format!("{path}.down.{index}");
        if from >= to {
            c.problem(
                &path,
                format!("found [\"{from}\", \"{to}\"]; it must begin before it ends"),
            );
        } else if index > 0 && *from < link.down[index - 1][1] {
            c.problem(
                &path,
                format!("it begins at \"{from}\", before the one before it is over"),
            );
        }
    }
    let mtus = link
        .mtu
        .iter()
        .chain(link.mtu_changes.iter().map(|it| &it.1));
    if let Some(mtu) = mtus.into_iter().find(|mtu| !(68..=65_575).contains(&mtu.0)) {
        let key = if link.mtu.as_ref() == Some(mtu) {
            "mtu"
        } else {
            "mtu_changes"
        };
        c.problem(
            &format!("{path}.{key}"),
            format!("found \"{mtu}\"; a link carries 68 B (RFC 791) to 65575 B"),
        );
    }
    if !link.mtu_changes.is_sorted_by_key(|(from, _)| from.0) {
        c.problem(
            &format!("{path}.mtu_changes"),
            "the changes are not in the order of time",
        );
    }
    for (side, queue) in [
        ("forward", &link.queue.forward),
        ("backward", &link.queue.backward),
    ] {
        if let Some(Amount::Packets(0) | Amount::Segments(0) | Amount::Bytes(0)) = queue {
            let path = c.side(&format!("{path}.queue"), side);
            c.problem(
                &path,
                "found a queue of 0; it holds the packet on the wire too, so at least 1 packet",
            );
        }
    }
    for (side, loss) in [
        ("forward", &link.loss.forward),
        ("backward", &link.loss.backward),
    ] {
        let Some(loss) = loss else { continue };
        let path = c.side(&format!("{path}.loss"), side);
        check_loss(c, spec, loss, &path);
    }
}

impl Checker<'_> {
    /// The path of one direction's value, or of the one value that stands for both.
    fn side(&self, path: &str, side: &str) -> String {
        let own = format!("{path}.{side}");
        let there = self.locate(&own).1.split('.').next_back() == Some(side);
        if there { own } else { path.to_owned() }
    }
}

fn check_loss(c: &mut Checker<'_>, spec: &Spec, loss: &Loss, path: &str) {
    match loss {
        Loss::List { segments, .. } => {
            for (index, segment) in segments.iter().enumerate() {
                let path = format!("{path}.segments.{index}");
                check_flow_name(c, spec, &segment.flow, &format!("{path}.flow"));
                if segment.number == 0 {
                    c.problem(
                        &format!("{path}.number"),
                        "found 0; segments are counted from 1",
                    );
                }
                if segment.transmission == Some(0) {
                    c.problem(
                        &format!("{path}.transmission"),
                        "found 0; transmissions are counted from 1",
                    );
                }
            }
        }
        Loss::Schedule { steps, .. } => {
            if steps.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
                c.problem(&format!("{path}.steps"), "the times of the steps must rise");
            }
        }
        Loss::Bernoulli { .. } | Loss::GilbertElliott { .. } | Loss::None {} => {}
    }
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
            let buffer = crate::agent::settings::sctp(&flow.transport).receive_buffer;
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

fn check_flow_name(c: &mut Checker<'_>, spec: &Spec, name: &str, path: &str) {
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

fn check_link_name(c: &mut Checker<'_>, spec: &Spec, name: &str, path: &str) {
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

/// Checks the name that a spec gives a measure.
pub(super) fn check_measure_name(c: &mut Checker<'_>, name: &str, path: &str) {
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        let message =
            format!("found {name:?}; a measure's name is made of letters, digits and `_`");
        c.problem(path, message);
    }
}

fn check_measures(c: &mut Checker<'_>, spec: &Spec, measures: &[Metric], path: &str) {
    for (index, metric) in measures.iter().enumerate() {
        let path = format!("{path}.{index}");
        for (key, flow) in metric.flows() {
            check_flow_name(c, spec, flow, &format!("{path}.{key}"));
        }
        if let Some(link) = metric.link() {
            check_link_name(c, spec, link, &format!("{path}.link"));
        }
        if let Metric::Probe {
            name,
            probe,
            take,
            threshold,
            ..
        } = metric
        {
            if Probe::from_name(probe).is_none() {
                let known = Probe::ALL.iter().map(|probe| probe.name());
                let message = format!("found {probe:?}, but no probe has this name");
                c.not_among(&format!("{path}.probe"), &message, probe, known);
            }
            if (*take == Take::Below) != threshold.is_some() {
                c.problem(
                    &path,
                    "`take = \"below\"` names a `threshold`, and nothing else does",
                );
            }
            check_measure_name(c, name, &format!("{path}.name"));
        }
        super::homes::check_measure(c, spec, metric, &path);
        if let Metric::Drops {
            reason: Some(reason),
            ..
        } = metric
            && DropReason::from_name(reason).is_none()
        {
            let known = DropReason::ALL.iter().map(|reason| reason.name());
            let message = format!("found {reason:?}, but packets are not dropped for this reason");
            c.not_among(&format!("{path}.reason"), &message, reason, known);
        }
        let names = metric.names();
        if measures[..index].iter().any(|other| other.names() == names) {
            c.problem(
                &path,
                format!(
                    "a second measure {:?} of {:?}; results could not tell them apart",
                    names.1, names.0
                ),
            );
        }
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
