//! Flows that can reach nothing: packets of theirs, or the answers, have no way.

use anabranch_sim::{Passage, Seed, Ways};
use anabranch_transport::{Nanos, time};

use super::{WorldError, build};
use crate::flows::start;
use crate::metric::FlowOutcome;
use crate::plan::PlannedPoint;
use crate::resolved::Member;

/// What is said of the flows of a run that had no way: at their start, or at all. `outcomes` tells which delivered nothing.
pub fn failures(
    point: &PlannedPoint,
    seed: Seed,
    outcomes: &[FlowOutcome],
) -> Result<Vec<String>, WorldError> {
    let spec = &point.spec;
    let end = spec.world.duration.0;
    let start = |member: &Member| start(&spec.flows[member.flow], &member.name, seed);
    // Where nothing is ever down and no route was given, only a flow that delivered nothing can have had no way.
    let changing = !spec.routes.is_empty()
        || spec.links.iter().any(|link| {
            [true, false]
                .iter()
                .any(|side| !link.outages(*side).is_empty())
        });
    let silent: Vec<bool> = outcomes
        .iter()
        .flat_map(|flow| flow.members.iter().map(|tally| tally.delivered == 0))
        .collect();
    let suspects = point.resolved.members.iter().zip(&silent);
    let suspects: Vec<&Member> = suspects
        .filter(|(member, silent)| (changing || **silent) && start(member) < end)
        .map(|(member, _)| member)
        .collect();
    if suspects.is_empty() {
        return Ok(Vec::new());
    }
    let built = build(point)?;
    let mut failures = Vec::new();
    for member in suspects {
        let flow = &spec.flows[member.flow];
        let start = start(member);
        let stop = flow.stop.map_or(end, |stop| stop.0.min(end));
        let mut ways = Ways::new(&built.topology);
        let times = ways.changes();
        let mut open = |now: Nanos| {
            let both = member.paths.iter().map(|[near, far]| {
                [
                    ways.find(now, member.nodes[0], *near, *far),
                    ways.find(now, member.nodes[1], *far, *near),
                ]
            });
            let both: Vec<[Passage; 2]> = both.collect();
            (!both.contains(&[Passage::Leads; 2])).then(|| both[0])
        };
        let Some([there, back]) = open(start) else {
            continue;
        };
        let mut later = times.iter().filter(|at| (start..stop).contains(at));
        let first = later.find(|at| open(**at).is_none());
        let (from, to) = (&flow.from, &flow.to);
        let (from, to, why) = match there {
            Passage::Leads => (to, from, back),
            why => (from, to, why),
        };
        let why = match why {
            Passage::NoRoute => "there is no route",
            Passage::Down => "a link on the way is down",
            Passage::Circle => "the routes go in a circle",
            Passage::Leads => "its paths are not open both ways",
        };
        let when = match first {
            Some(at) => format!(
                "at its start, {} s, up to {} s",
                time::seconds(start),
                time::seconds(*at)
            ),
            None => "as long as it runs".to_owned(),
        };
        failures.push(format!(
            "{}: no way leads from {from} to {to} {when}: {why}",
            member.name
        ));
    }
    Ok(failures)
}
