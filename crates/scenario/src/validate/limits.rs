//! Checks of the limits of a spec, which protect memory.

use crate::checker::Checker;
use crate::constellation::Class;
use crate::flow::{Flow, StartTime};
use crate::limits::{MAX_BINS, MAX_LINKS, MAX_NODES};
use crate::quantity::TimeSpan;
use crate::spec::{Experiment, Record, Spec};

/// Checks the total number of members of all nodes.
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
    let all: u64 = spec.groups().map(|(_, count)| u64::from(count)).sum();
    if all > MAX_NODES {
        let message = format!(
            "found {all} nodes, satellites and stations in all; a world holds at most {MAX_NODES}"
        );
        c.problem("constellation", message);
    }
    check_beams(c, spec);
}

/// Checks the number of links of constellations together with the number of wires.
fn check_beams(c: &mut Checker<'_>, spec: &Spec) {
    let mut all = spec.links.len() as u64;
    for (index, constellation) in spec.constellations.iter().enumerate() {
        let own = Class::ALL.map(|class| u64::from(constellation.members(class)));
        all += own.iter().sum::<u64>();
        if all > MAX_LINKS {
            let [isl, up, down] = own;
            let message = format!(
                "found {all} links up to here, {isl} between its satellites, {up} up and {down} down; a world holds at most {MAX_LINKS}"
            );
            return c.problem(&format!("constellation.{index}"), message);
        }
    }
}

/// Maximum time for which a member of the flow offers data, in the longest run.
pub fn active_time(spec: &Spec, flow: &Flow) -> TimeSpan {
    let runs = spec.experiments.iter().filter_map(|it| it.duration);
    let longest = runs.fold(spec.world.duration, TimeSpan::max);
    let begin = match flow.start {
        StartTime::At(begin) => begin,
        StartTime::Uniform { uniform } => uniform[0],
    };
    let end = flow.stop.map_or(longest, |stop| stop.min(longest));
    let active = TimeSpan(end.0.saturating_sub(begin.0));
    flow.duration.map_or(active, |lasts| lasts.min(active))
}

/// Checks the bin width of a record: it must be above 0, and the number of bins in a run must not
/// exceed the limit.
pub fn check_bin(
    c: &mut Checker<'_>,
    spec: &Spec,
    experiment: &Experiment,
    record: &Record,
    path: &str,
) {
    let bin = record.bin_width();
    let path = format!("{path}.bin");
    if bin.0 == 0 {
        return c.problem(&path, "found a bin of 0; a bin has a width");
    }
    let duration = experiment.duration.unwrap_or(spec.world.duration);
    if duration.0 / bin.0 > MAX_BINS {
        let least = TimeSpan(duration.0.div_ceil(MAX_BINS));
        let message = format!(
            "found a bin of {bin} in a run of {duration}: {} bins; a run has at most {MAX_BINS}, so a bin is at least {least} wide",
            duration.0 / bin.0
        );
        c.problem(&path, message);
    }
}
