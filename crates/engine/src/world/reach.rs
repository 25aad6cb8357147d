//! Flows that can reach nothing: packets of theirs, or the answers, have no way.

use anabranch_scenario::Spec;
use anabranch_scenario::names::member_name;
use anabranch_sim::{Passage, Seed, Ways};
use anabranch_transport::{Nanos, time};

use super::flows::{Members, members};
use super::{WorldError, homes, topology};
use crate::kinds::Standard;
use crate::metric::FlowOutcome;

/// What is said of the flows of a run that had no way: at their start, or at all. `outcomes` tells which delivered nothing.
pub fn failures(
    spec: &Spec,
    kinds: &Standard,
    seed: Seed,
    outcomes: &[FlowOutcome],
) -> Result<Vec<String>, WorldError> {
    let end = spec.world.duration.0;
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
    let members = members(spec);
    let suspects = members.iter().zip(&silent);
    let suspects: Vec<&Members<'_>> = suspects
        .filter(|(member, silent)| (changing || **silent) && member.start(seed) < end)
        .map(|(member, _)| member)
        .collect();
    if suspects.is_empty() {
        return Ok(Vec::new());
    }
    let mut built = topology::build(spec, kinds)?;
    homes::assign(&mut built, spec)?;
    let mut failures = Vec::new();
    for member in suspects {
        let start = member.start(seed);
        let stop = member.flow.stop.map_or(end, |stop| stop.0.min(end));
        let nodes = [
            topology::end(&built.topology, spec, &member.flow.from, member.index)?,
            topology::end(&built.topology, spec, &member.flow.to, member.index)?,
        ];
        let paths = homes::paths(&built.topology, &built.links, spec, member)?;
        let mut ways = Ways::new(&built.topology);
        let times = ways.changes();
        let mut open = |now: Nanos| {
            let both = paths.iter().map(|[near, far]| {
                [
                    ways.find(now, nodes[0], *near, *far),
                    ways.find(now, nodes[1], *far, *near),
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
        let (from, to) = (&member.flow.from, &member.flow.to);
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
        let name = member_name(&member.flow.name, member.flow.count.0, member.index);
        failures.push(format!(
            "{name}: no way leads from {from} to {to} {when}: {why}"
        ));
    }
    Ok(failures)
}
