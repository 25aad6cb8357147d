//! Measures that nothing can be measured by.

use anabranch_transport::Probe;

use crate::checker::Checker;
use crate::flow::Workload;
use crate::measure::{Metric, Take};
use crate::names::member;
use crate::spec::Spec;
use crate::validate::names::{check_flow_name, check_link_name};
use crate::vocabulary::Vocabulary;

/// Checks the name that a spec gives a measure.
fn check_measure_name(c: &mut Checker<'_>, name: &str, path: &str) {
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        let message =
            format!("found {name:?}; a measure's name is made of letters, digits and `_`");
        c.problem(path, message);
    }
}

/// Checks measures.
pub(super) fn check_measures(
    c: &mut Checker<'_>,
    spec: &Spec,
    vocabulary: &dyn Vocabulary,
    measures: &[Metric],
    path: &str,
) {
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
        check_numbers(c, spec, vocabulary, metric, &path);
        if let Metric::Drops {
            reason: Some(reason),
            ..
        } = metric
            && !vocabulary.drop_reasons().contains(&reason.as_str())
        {
            let known = vocabulary.drop_reasons();
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

/// Checks a measure of messages or of an estimate.
fn check_numbers(
    c: &mut Checker<'_>,
    spec: &Spec,
    vocabulary: &dyn Vocabulary,
    metric: &Metric,
    path: &str,
) {
    match metric {
        Metric::RepeatedMessages { flow } | Metric::MissingMessages { flow } => {
            check_numbered(c, spec, vocabulary, flow, &format!("{path}.flow"));
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
fn check_numbered(
    c: &mut Checker<'_>,
    spec: &Spec,
    vocabulary: &dyn Vocabulary,
    flow: &str,
    path: &str,
) {
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
    // Datagrams that are lost are not delivered later, so only a transport with a window has messages to know again.
    let kind = vocabulary.transport(&flow.transport);
    if kind.is_some_and(|kind| !(kind.messages && kind.window)) {
        let message = format!("{group:?} does not run over SCTP; only SCTP delivers messages");
        c.problem(path, message);
    } else if let Some(smallest) = smallest.filter(|&size| size < ROOM) {
        let message = format!(
            "{group:?} has messages of {smallest} B; a message is known again by a number, for which it needs {ROOM} B"
        );
        c.problem(path, message);
    }
}
