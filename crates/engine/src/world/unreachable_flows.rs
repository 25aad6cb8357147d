//! Flows that delivered nothing, and flows without a path for their packets or answers.

use std::net::IpAddr;

use anabranch_scenario::Flow;
use anabranch_settings::counted;
use anabranch_sim::{Direction, DropReason, LinkId, PathFinder, Reachability, Seed};
use anabranch_transport::{Nanos, time};

use super::{WorldError, build};
use crate::agent::flow_stats::FlowStats;
use crate::flows::start;
use crate::metric::{FlowOutcome, LinkOutcome};
use crate::network::Built;
use crate::point::PlannedPoint;
use crate::resolved_point::PlannedMember;

/// Messages about flows of a run that delivered nothing, or had no path at their start or at all.
/// For a failed flow, `outcomes` has the reason.
pub fn failures(
    point: &PlannedPoint,
    seed: Seed,
    outcomes: &[FlowOutcome],
    links: &[LinkOutcome],
) -> Result<Vec<String>, WorldError> {
    let spec = &point.spec;
    let end = spec.world.duration.0;
    let start = |member: &PlannedMember| start(&spec.flows[member.flow], &member.name, seed);
    // Without outages and static routes, only a flow that delivered nothing can have had no path.
    let changing = !spec.routes.is_empty()
        || spec.links.iter().any(|link| {
            [true, false]
                .iter()
                .any(|side| !link.outages(*side).is_empty())
        });
    let tallies = outcomes.iter().flat_map(|flow| &flow.members);
    let all = point.resolved.members.iter().zip(tallies);
    let suspects = all.filter(|(_, tally)| changing || tally.delivered == 0);
    // A start after the end switches a flow off; the plan has a note about it.
    let suspects: Vec<(&PlannedMember, &FlowStats)> =
        suspects.filter(|(member, _)| start(member) < end).collect();
    if suspects.is_empty() {
        return Ok(Vec::new());
    }
    let built = build(point)?;
    let mut failures = Vec::new();
    for (member, tally) in suspects {
        let flow = &spec.flows[member.flow];
        let start = start(member);
        let stop = flow.stop.map_or(end, |stop| stop.0.min(end));
        let mut ways = PathFinder::new(&built.topology);
        let times = ways.changes(end);
        let mut open = |now: Nanos| {
            let both = member.paths.iter().map(|[near, far]| {
                [
                    ways.find(now, member.nodes[0], *near, *far),
                    ways.find(now, member.nodes[1], *far, *near),
                ]
            });
            let both: Vec<[Reachability; 2]> = both.collect();
            (!both.contains(&[Reachability::Reachable; 2])).then(|| both[0])
        };
        let Some([there, back]) = open(start) else {
            if tally.delivered == 0 {
                let too_big = too_big(&built, links, &mut ways, member, start);
                // A failed flow has its own message.
                let nothing = || format!("{}: it delivered nothing", member.name);
                failures.extend(too_big.or_else(|| tally.failed.is_none().then(nothing)));
            }
            continue;
        };
        let mut later = times.into_iter().filter(|at| (start..stop).contains(at));
        let first = later.find(|at| open(*at).is_none());
        failures.push(no_way(flow, member, [there, back], start, first));
    }
    Ok(failures)
}

/// Whether a member had no path from its `start` on, and until when; `None`: for the whole run.
fn no_way(
    flow: &Flow,
    member: &PlannedMember,
    [there, back]: [Reachability; 2],
    start: Nanos,
    until: Option<Nanos>,
) -> String {
    let (from, to) = (&flow.from, &flow.to);
    let (from, to, why) = match there {
        Reachability::Reachable => (to, from, back),
        why => (from, to, why),
    };
    let why = match why {
        Reachability::NoRoute => "there is no route",
        Reachability::LinkDown => "a link on the way is down",
        Reachability::Loop => "the routes go in a circle",
        Reachability::Reachable => "its paths are not open both ways",
    };
    let when = match until {
        Some(at) => format!(
            "at its start, {} s, up to {} s",
            time::seconds(start),
            time::seconds(at)
        ),
        None => "as long as it runs".to_owned(),
    };
    format!(
        "{}: no way leads from {from} to {to} {when}: {why}",
        member.name
    )
}

/// Whether a link on the path of a member that delivered nothing dropped packets because of their
/// size.
fn too_big(
    built: &Built,
    outcomes: &[LinkOutcome],
    ways: &mut PathFinder<'_>,
    member: &PlannedMember,
    start: Nanos,
) -> Option<String> {
    let of =
        |(end, [from, to]): (usize, [IpAddr; 2])| ways.links(start, member.nodes[end], from, to);
    let both = member
        .paths
        .iter()
        .flat_map(|&[near, far]| [(0, [near, far]), (1, [far, near])]);
    let crossed: Vec<(LinkId, Direction)> = both.filter_map(of).flatten().collect();
    let mut all = built.links.iter().zip(outcomes).flat_map(|(ids, outcome)| {
        let members = ids.iter().zip(&outcome.members);
        members.flat_map(move |(id, stats)| {
            let sides = Direction::BOTH.into_iter().zip(stats);
            sides.map(move |(direction, stats)| (outcome, (*id, direction), stats))
        })
    });
    all.find_map(|(link, lane, stats)| {
        let dropped = stats.dropped.count(DropReason::TooBig);
        (dropped > 0 && crossed.contains(&lane)).then(|| {
            format!(
                "{}: it delivered nothing, and the link {} dropped {} larger than it carries (`mtu`)",
                member.name,
                link.name,
                counted(dropped, "packet")
            )
        })
    })
}
