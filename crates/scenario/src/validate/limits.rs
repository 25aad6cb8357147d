//! That a spec asks for no more than a machine can hold.

use crate::checker::Checker;
use crate::flow::{Flow, Start, Workload};
use crate::limits::{MAX_BINS, MAX_MESSAGES, MAX_NODES};
use crate::quantity::{Rate, Size, Span};
use crate::spec::{Experiment, Record, Spec};

/// Width of a bin where a record does not say.
const BIN: Span = Span(1_000_000_000);

/// Checks that all members of all nodes together are not too many.
pub fn check_groups(c: &mut Checker<'_>, spec: &Spec) {
    let mut members = 0;
    for (index, node) in spec.nodes.iter().enumerate() {
        members += u64::from(node.count.0);
        if members > MAX_NODES {
            let message = format!(
                "found {members} members of nodes up to here; a world holds at most {MAX_NODES}"
            );
            return c.problem(&format!("node.{index}.count"), message);
        }
    }
}

/// Checks that a workload at a constant rate does not offer too many messages in the longest run.
pub fn check_workload(c: &mut Checker<'_>, spec: &Spec, flow: &Flow, path: &str) {
    let (Workload::Cbr { rate, message } | Workload::OnOff { rate, message, .. }) = &flow.workload
    else {
        return;
    };
    let active = active_time(spec, flow);
    let messages = offered(*rate, *message, active);
    if messages > MAX_MESSAGES {
        let found = format!(
            "found {messages} messages of {message} in {active}; a member of a flow offers at most {MAX_MESSAGES} in a run"
        );
        c.problem(&format!("{path}.workload.rate"), found);
    }
}

fn offered(rate: Rate, message: Size, active: Span) -> u128 {
    let bits = u128::from(rate.0) * u128::from(active.0) / 1_000_000_000;
    bits / (8 * u128::from(message.0.max(1)))
}

/// How long a member of the flow may offer data in the longest run.
fn active_time(spec: &Spec, flow: &Flow) -> Span {
    let runs = spec.experiments.iter().filter_map(|it| it.duration);
    let longest = runs.fold(spec.world.duration, Span::max);
    let begin = match flow.start {
        Start::At(begin) => begin,
        Start::Uniform { uniform } => uniform[0],
    };
    let end = flow.stop.map_or(longest, |stop| stop.min(longest));
    let active = Span(end.0.saturating_sub(begin.0));
    flow.lasts.map_or(active, |lasts| lasts.min(active))
}

/// Checks the width of a record's bins: above 0, and not so narrow that a run has too many.
pub fn check_bin(
    c: &mut Checker<'_>,
    spec: &Spec,
    experiment: &Experiment,
    record: &Record,
    path: &str,
) {
    let bin = record.bin.unwrap_or(BIN);
    let path = format!("{path}.bin");
    if bin.0 == 0 {
        return c.problem(&path, "found a bin of 0; a bin has a width");
    }
    let duration = experiment.duration.unwrap_or(spec.world.duration);
    if duration.0 / bin.0 > MAX_BINS {
        let least = Span(duration.0.div_ceil(MAX_BINS));
        let message = format!(
            "found a bin of {bin} in a run of {duration}: {} bins; a run has at most {MAX_BINS}, so a bin is at least {least} wide",
            duration.0 / bin.0
        );
        c.problem(&path, message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_counted_without_overflow() {
        // 8 Mbit/s in messages of 1000 B: 1000 a second.
        assert_eq!(
            offered(Rate(8_000_000), Size(1000), Span(2_500_000_000)),
            2500
        );
        assert!(offered(Rate(u64::MAX), Size(1), Span(u64::MAX)) > MAX_MESSAGES);
        assert_eq!(offered(Rate(8), Size(0), Span(1_000_000_000)), 1);
    }
}
