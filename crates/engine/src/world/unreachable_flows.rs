//! Detection of flows without any delivery, and of flows without a path in one of the two
//! directions.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Range;

use anabranch_scenario::constellation::{Class, Constellation};
use anabranch_scenario::{Flow, Link};
use anabranch_settings::counted;
use anabranch_sim::{DropReason, LinkDirection, LinkId, PathFinder, Reachability, Seed};
use anabranch_transport::{Nanos, time};

use super::{WorldError, build};
use crate::agent::flow_stats::FlowStats;
use crate::flows::start;
use crate::metric::{FlowOutcome, LinkOutcome};
use crate::network::Built;
use crate::point::PlannedPoint;
use crate::resolved_point::PlannedMember;

/// Messages about flows of a run that delivered no data, or had no path at their start or during
/// the whole run. For a flow that ended early, `outcomes` has the reason.
pub fn failures(
    point: &PlannedPoint,
    seed: Seed,
    outcomes: &[FlowOutcome],
    links: &[LinkOutcome],
) -> Result<Vec<String>, WorldError> {
    let spec = &point.spec;
    let end = spec.world.duration.0;
    let start = |member: &PlannedMember| start(&spec.flows[member.flow], &member.name, seed);
    // If the spec has neither outages nor static routes, only flows that delivered nothing are
    // examined. If satellites move, another flow may also have no path at its start, but this is
    // then not reported.
    let link_outages = |link: &Link| [true, false].map(|side| !link.outages(side).is_empty());
    let class_outages = |constellation: &Constellation| {
        let classes = Class::ALL.into_iter();
        let mut all = classes.filter_map(|class| constellation.transmitter(class));
        all.any(|transmitter| !transmitter.down.is_empty())
    };
    let changing = !spec.routes.is_empty()
        || spec.links.iter().flat_map(link_outages).any(|it| it)
        || spec.constellations.iter().any(class_outages);
    let tallies = outcomes.iter().flat_map(|flow| &flow.members);
    let all = point.resolved.members.iter().zip(tallies);
    let suspects = all.filter(|(_, tally)| changing || tally.delivered == 0);
    // A start after the end of the run omits a flow, about which the plan has a note.
    let suspects: Vec<Suspect<'_>> = suspects.filter(|(member, _)| start(member) < end).collect();
    if suspects.is_empty() {
        return Ok(Vec::new());
    }
    let built = build(point)?;
    let lives = suspects.iter().map(|(member, _)| {
        let stop = spec.flows[member.flow].stop;
        start(member)..stop.map_or(end, |stop| stop.0.min(end))
    });
    let lives: Vec<Range<Nanos>> = lives.collect();
    let mut paths = PathFinder::new(&built.topology);
    let at_start = at_start(&mut paths, &built, &suspects, &lives, links);
    let closed = (0..).zip(&at_start);
    let closed = closed.filter_map(|(index, it)| it.is_closed().then_some(index));
    let mut paths = PathFinder::new(&built.topology);
    let opened = opened(&mut paths, closed.collect(), &suspects, &lives, end);
    let all = suspects.iter().zip(at_start).enumerate();
    let failures = all.filter_map(|(index, ((member, flow), at_start))| match at_start {
        AtStart::Closed(both) => {
            let until = opened.get(&index).copied();
            let flow = &spec.flows[member.flow];
            Some(no_path(flow, member, both, lives[index].start, until))
        }
        AtStart::Open(too_big) if flow.delivered == 0 => {
            // A flow that ended early has a separate message.
            let nothing = || format!("{}: it delivered nothing", member.name);
            too_big.or_else(|| flow.failed.is_none().then(nothing))
        }
        AtStart::Open(_) => None,
    });
    Ok(failures.collect())
}

/// State of a member's paths at its start.
#[derive(Clone)]
enum AtStart {
    /// No path is open. The value has the results for the first path in both directions.
    Closed([Reachability; 2]),
    /// A path is open. The value is a message if no data was delivered because packets were too
    /// large.
    Open(Option<String>),
}

impl AtStart {
    fn is_closed(&self) -> bool {
        matches!(self, Self::Closed(_))
    }
}

type Suspect<'a> = (&'a PlannedMember, &'a FlowStats);

/// State of the paths of all members at their starts. Members are processed in the order of their
/// start times, so that members with the same start time share the computed routes.
fn at_start(
    paths: &mut PathFinder<'_>,
    built: &Built,
    suspects: &[Suspect<'_>],
    lives: &[Range<Nanos>],
    links: &[LinkOutcome],
) -> Vec<AtStart> {
    let mut order: Vec<usize> = (0..suspects.len()).collect();
    order.sort_by_key(|&index| lives[index].start);
    let mut all = vec![AtStart::Open(None); suspects.len()];
    for index in order {
        let (member, flow) = suspects[index];
        let start = lives[index].start;
        all[index] = match closed(paths, member, start) {
            Some(both) => AtStart::Closed(both),
            None if flow.delivered == 0 => {
                AtStart::Open(too_big(built, links, paths, member, start))
            }
            None => AtStart::Open(None),
        };
    }
    all
}

/// For each of the `closed` members, the first time after its start at which it has an open path.
/// The routes are computed for all members together, until each has a path.
fn opened(
    paths: &mut PathFinder<'_>,
    mut closed_members: Vec<usize>,
    suspects: &[Suspect<'_>],
    lives: &[Range<Nanos>],
    end: Nanos,
) -> BTreeMap<usize, Nanos> {
    let mut opened = BTreeMap::new();
    if closed_members.is_empty() {
        return opened;
    }
    for now in paths.changes(end) {
        closed_members.retain(|&index| {
            let opens =
                lives[index].contains(&now) && closed(paths, suspects[index].0, now).is_none();
            if opens {
                opened.insert(index, now);
            }
            !opens && now < lives[index].end
        });
        if closed_members.is_empty() {
            break;
        }
    }
    opened
}

/// Results in both directions for the first path of a member at a time; `None` if one of its paths
/// is open.
fn closed(
    paths: &mut PathFinder<'_>,
    member: &PlannedMember,
    now: Nanos,
) -> Option<[Reachability; 2]> {
    let both = member.paths.iter().map(|[near, far]| {
        [
            paths.find(now, member.nodes[0], *near, *far),
            paths.find(now, member.nodes[1], *far, *near),
        ]
    });
    let both: Vec<[Reachability; 2]> = both.collect();
    (!both.contains(&[Reachability::Reachable; 2])).then(|| both[0])
}

/// Message about a member that has no path from its `start` until `until`, or, with `None`, during
/// its whole lifetime.
fn no_path(
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
        Reachability::LinkDown => "a link on the path is down",
        Reachability::Loop => "the routes form a loop",
        Reachability::Reachable => "no path is open in both directions",
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
        "{}: no path leads from {from} to {to} {when}: {why}",
        member.name
    )
}

/// Message about a link on a path of a member that dropped packets because of their size; the
/// member delivered nothing.
fn too_big(
    built: &Built,
    outcomes: &[LinkOutcome],
    paths: &mut PathFinder<'_>,
    member: &PlannedMember,
    start: Nanos,
) -> Option<String> {
    let of =
        |(end, [from, to]): (usize, [IpAddr; 2])| paths.links(start, member.nodes[end], from, to);
    let both = member
        .paths
        .iter()
        .flat_map(|&[near, far]| [(0, [near, far]), (1, [far, near])]);
    let crossed: Vec<(LinkId, LinkDirection)> = both.filter_map(of).flatten().collect();
    let mut all = built.links.iter().zip(outcomes).flat_map(|(ids, outcome)| {
        let members = ids.iter().zip(&outcome.members);
        members.flat_map(move |(id, stats)| {
            let sides = LinkDirection::BOTH.into_iter().zip(stats);
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

#[cfg(test)]
mod tests {
    use anabranch_transport::time::{MILLISECOND, SECOND};

    use super::*;
    use crate::plan::{Plan, PlanRequest, PlannedRun};

    /// A world with flows between all pairs of three stations, each below one of twelve satellites.
    /// `down` is the text of the links' outages, and the flows start alternately at the two times
    /// `starts`. Returns the numbers of route computations for the starts and for the times after
    /// them, and for each flow whether it has no path at its start.
    fn computed(down: &str, starts: [Nanos; 2]) -> ([u64; 2], Vec<bool>) {
        let text = format!(
            r#"
anabranch = 1
name = "ring"
world = {{ duration = "10 s" }}
[[constellation]]
name = "ring"
shells = [{{ kind = "walker", planes = 1, satellites = 12, phasing = 0, altitude = 1000, inclination = 0, min_elevation = 10 }}]
isl = {{ rate = "1 Mbit/s"{down} }}
up = {{ rate = "1 Mbit/s" }}
down = {{ rate = "1 Mbit/s" }}
[[ground]]
name = "city"
stations = ["0,0", "0,30", "0,60"]
[[flow]]
name = "f"
from = "city"
to = "city"
pairs = "all"
transport = {{ protocol = "udp" }}
workload = {{ kind = "cbr", rate = "8 kbit/s", message = "100 B" }}
[[measure]]
metric = "goodput"
flow = "f"
"#
        );
        let plan = Plan::new(PlanRequest::new("ring.toml", text)).expect("a plan");
        let units = PlannedRun::all(&plan);
        let point = units[0].resolve().expect("a point");
        let built = build(&point).expect("a world");
        let members = &point.resolved.members;
        let nothing = FlowStats::default();
        let suspects: Vec<Suspect<'_>> = members.iter().map(|it| (it, &nothing)).collect();
        let lives = (0..suspects.len()).map(|index| starts[index % 2]..10 * SECOND);
        let lives: Vec<_> = lives.collect();
        let mut first = PathFinder::new(&built.topology);
        let at_start = at_start(&mut first, &built, &suspects, &lives, &[]);
        let closed = at_start.iter().map(AtStart::is_closed);
        let closed: Vec<bool> = closed.collect();
        let mut second = PathFinder::new(&built.topology);
        let indices = (0..).zip(&closed).filter(|(_, closed)| **closed);
        let indices = indices.map(|(index, _)| index).collect();
        opened(&mut second, indices, &suspects, &lives, 10 * SECOND);
        ([first.computed(), second.computed()], closed)
    }

    /// The six flows need routes to three stations. These are computed once if all flows start
    /// together, and otherwise also for the second start.
    #[test]
    fn flows_share_the_routes_to_their_ends() {
        let open = vec![false; 6];
        assert_eq!(computed("", [0; 2]), ([3, 0], open.clone()));
        let later = [0, 50 * MILLISECOND];
        assert_eq!(computed("", later), ([3, 0], open.clone()));
        assert_eq!(computed("", [0, SECOND]), ([6, 0], open));
    }

    /// With the inter-satellite links down no flow has a path in 100 intervals of 100 ms. Each
    /// interval requires routes to three stations, and not two routes for each of six flows.
    #[test]
    fn flows_without_a_path_are_followed_together() {
        let down = r#", down = [["0 s", "10 s"]]"#;
        assert_eq!(computed(down, [0; 2]), ([3, 300], vec![true; 6]));
    }
}
