//! What a spec sets for a time that no run reaches. It may be meant: a start behind the end is how a flow is left out. So it is a note.

use anabranch_scenario::Link;
use anabranch_scenario::quantity::Span;

use crate::plan::{PlannedExperiment, PlannedPoint};

/// Notes about the flows and links of a plan, each of what happens at no point of it.
pub fn notes(experiments: &[PlannedExperiment]) -> Vec<String> {
    let points: Vec<&PlannedPoint> = experiments.iter().flat_map(|it| &it.points).collect();
    let Some(spec) = points.first().map(|point| &point.spec) else {
        return Vec::new();
    };
    let flows = spec.flows.iter().enumerate().filter_map(|(index, flow)| {
        let at = |point: &PlannedPoint| Some(point.spec.flows.get(index)?.start.earliest());
        let (at, end) = never_reached(&points, at)?;
        let name = &flow.name;
        Some(format!(
            "`flow.{name}.start`: {at}, and no run is longer than {end}: the flow never starts"
        ))
    });
    let links = spec.links.iter().enumerate().flat_map(|(index, link)| {
        let name = &link.name;
        let points = &points;
        LINK_TIMES.iter().filter_map(move |(key, what, first)| {
            let at = |point: &PlannedPoint| first(point.spec.links.get(index)?);
            let (at, end) = never_reached(points, at)?;
            Some(format!(
                "`link.{name}.{key}`: {at} at the earliest, and no run is longer than {end}: {what}"
            ))
        })
    });
    flows.chain(links).collect()
}

/// The earliest time that the points have, and the longest run, where there is one and no run reaches its own.
fn never_reached(
    points: &[&PlannedPoint],
    at: impl Fn(&PlannedPoint) -> Option<Span>,
) -> Option<(Span, Span)> {
    let times = points
        .iter()
        .filter_map(|point| Some((at(point)?, point.spec.world.duration)));
    let times: Vec<(Span, Span)> = times.collect();
    let earliest = times.iter().map(|(at, _)| *at).min()?;
    let longest = points.iter().map(|point| point.spec.world.duration).max()?;
    times
        .iter()
        .all(|(at, end)| at >= end)
        .then_some((earliest, longest))
}

/// A key of a link, what does not happen where its time is not reached, and the first time that stands there.
type LinkTime = (&'static str, &'static str, fn(&Link) -> Option<Span>);

const LINK_TIMES: [LinkTime; 3] = [
    ("rate", "the rate never changes", |link| {
        let sides = [true, false]
            .into_iter()
            .filter_map(|side| link.rate.side(side));
        let changes = sides.filter_map(|rate| rate.steps().get(1));
        changes.map(|(at, _)| Span(*at)).min()
    }),
    ("down", "the link is never down", |link| {
        let sides = [true, false]
            .into_iter()
            .filter_map(|side| link.down.side(side));
        sides.flatten().map(|[begin, _]| *begin).min()
    }),
    ("mtu_changes", "the MTU never changes", |link| {
        link.mtu_changes.iter().map(|(from, _)| *from).min()
    }),
];
