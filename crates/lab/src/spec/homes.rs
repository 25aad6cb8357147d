//! Hosts with several interfaces: which of them a flow uses, and how they pair up.

use anabranch_transport::Probe;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::validate::{Checker, NodeName, member};
use super::validate_measure::check_measure_name;
use super::{Flow, Metric, Protocol, Spec, Workload};

/// A path of a flow: the interface of its source and the interface of its sink, each by the link it is at. A member
/// of a group of flows means its own host's interface at the link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowPath {
    /// The link at the source.
    pub from: String,
    /// The link at the sink.
    pub to: String,
}

/// Checks that a flow's paths begin and end at its hosts, and that its transport can use them.
pub(super) fn check(c: &mut Checker<'_>, spec: &Spec, flow: &Flow, path: &str) {
    let multihomed = matches!(
        flow.transport,
        Protocol::Sctp {
            multihomed: true,
            ..
        }
    );
    if multihomed && !flow.paths.is_empty() {
        c.problem(
            &format!("{path}.transport.multihomed"),
            "found both `paths` and `multihomed`; `paths` says which interfaces are used",
        );
    }
    if flow.paths.len() > 1 && !matches!(flow.transport, Protocol::Sctp { .. }) {
        c.problem(
            &format!("{path}.paths"),
            format!(
                "found {} paths; only SCTP uses more than one",
                flow.paths.len()
            ),
        );
    }
    for (index, one) in flow.paths.iter().enumerate() {
        let path = format!("{path}.paths.{index}");
        check_end(c, spec, &one.from, &flow.from, &format!("{path}.from"));
        check_end(c, spec, &one.to, &flow.to, &format!("{path}.to"));
        let again = flow.paths[..index].iter().any(|other| other.to == one.to);
        if again {
            let message = format!(
                "a second path arrives at {:?}; SCTP has one path to each address of the peer",
                one.to
            );
            c.problem(&format!("{path}.to"), message);
        }
    }
}

/// Checks that a link exists and ends at a host.
fn check_end(c: &mut Checker<'_>, spec: &Spec, link: &str, host: &str, path: &str) {
    let (host, _) = NodeName::split(host);
    let at_host = |name: &&String| NodeName::split(name).0 == host;
    let ends_there = |link: &super::Link| link.between.iter().any(|name| at_host(&name));
    let interfaces = spec
        .links
        .iter()
        .filter(|link| ends_there(link))
        .map(|link| link.name.as_str());
    if !spec
        .links
        .iter()
        .any(|known| known.name == link && ends_there(known))
    {
        let message = format!("found {link:?}, but no link of this name ends at {host:?}");
        c.not_among(path, &message, link, interfaces);
    }
}

/// Checks a measure of messages or of an estimate.
pub(super) fn check_measure(c: &mut Checker<'_>, spec: &Spec, metric: &Metric, path: &str) {
    match metric {
        Metric::RepeatedMessages { flow } | Metric::MissingMessages { flow } => {
            check_numbered(c, spec, flow, &format!("{path}.flow"));
        }
        Metric::EstimateError {
            name, probe, truth, ..
        } => {
            check_measure_name(c, name, &format!("{path}.name"));
            if Probe::from_name(probe).is_none() {
                let known = Probe::ALL.iter().map(|probe| probe.name());
                let message = format!("found {probe:?}, but no probe has this name");
                c.not_among(&format!("{path}.probe"), &message, probe, known);
            }
            if truth.is_empty() || truth.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
                let message = "the truth has at least one step, and the times of its steps rise";
                c.problem(&format!("{path}.truth"), message);
            }
        }
        Metric::Probe { per: Some(per), .. } if per.is_nan() || *per <= 0.0 => {
            let message = format!("found {per}; a number is divided by something above 0");
            c.problem(&format!("{path}.per"), message);
        }
        _ => {}
    }
}

/// Checks that the messages of a flow can carry numbers.
fn check_numbered(c: &mut Checker<'_>, spec: &Spec, flow: &str, path: &str) {
    const ROOM: u64 = 16;
    let (group, _) = member(flow);
    let Some(flow) = spec.flows.iter().find(|known| known.name == group) else {
        return;
    };
    let smallest = match &flow.workload {
        Workload::Bulk { message, .. } => message.map(|size| size.0),
        Workload::Cbr { message, .. } | Workload::OnOff { message, .. } => Some(message.0),
        Workload::Trace { messages } => messages.iter().map(|message| message.size.0).min(),
    };
    if !matches!(flow.transport, Protocol::Sctp { .. }) {
        let message = format!("{group:?} does not run over SCTP; only SCTP delivers messages");
        c.problem(path, message);
    } else if let Some(smallest) = smallest.filter(|&size| size < ROOM) {
        let message = format!(
            "{group:?} has messages of {smallest} B; a message is known again by a number, for which it needs {ROOM} B"
        );
        c.problem(path, message);
    }
}
