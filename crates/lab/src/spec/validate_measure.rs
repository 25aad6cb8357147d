//! Measures that nothing can be measured by.

use anabranch_sim::DropReason;
use anabranch_transport::Probe;

use super::checker::Checker;
use super::measure::Take;
use super::validate::{check_flow_name, check_link_name};
use super::{Metric, Spec};

/// Checks the name that a spec gives a measure.
pub(super) fn check_measure_name(c: &mut Checker<'_>, name: &str, path: &str) {
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        let message =
            format!("found {name:?}; a measure's name is made of letters, digits and `_`");
        c.problem(path, message);
    }
}

/// Checks measures.
pub(super) fn check_measures(c: &mut Checker<'_>, spec: &Spec, measures: &[Metric], path: &str) {
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
