//! Notes about times in a spec that no run reaches. Such times are not errors, because a start
//! after the end is a way to omit a flow.

use anabranch_scenario::quantity::TimeSpan;
use anabranch_scenario::{Link, Spec};

/// Earliest times of the events of flows and links, over all points so far.
#[derive(Clone, Debug, Default)]
pub struct Times {
    flows: Vec<Option<First>>,
    links: Vec<[Option<First>; LINK_TIMES.len()]>,
    /// Duration of the longest run.
    longest: Option<TimeSpan>,
}

/// Earliest time of an event over all points, and whether the event occurs in no run because each
/// run ends before it.
#[derive(Clone, Copy, Debug)]
struct First {
    earliest: TimeSpan,
    is_beyond: bool,
}

/// Adds the time `at` of an event at a point whose runs end at `end`.
fn add(known: &mut Option<First>, at: TimeSpan, end: TimeSpan) {
    let before = known.unwrap_or(First {
        earliest: at,
        is_beyond: true,
    });
    *known = Some(First {
        earliest: before.earliest.min(at),
        is_beyond: before.is_beyond && at >= end,
    });
}

impl Times {
    /// Adds the times of a point.
    pub fn add(&mut self, spec: &Spec) {
        let end = spec.world.duration;
        self.longest = self.longest.max(Some(end));
        if self.flows.len() < spec.flows.len() {
            self.flows.resize(spec.flows.len(), None);
        }
        if self.links.len() < spec.links.len() {
            self.links.resize(spec.links.len(), Default::default());
        }
        for (flow, known) in spec.flows.iter().zip(&mut self.flows) {
            add(known, flow.start.earliest(), end);
        }
        for (link, all) in spec.links.iter().zip(&mut self.links) {
            for ((_, _, first), known) in LINK_TIMES.iter().zip(all) {
                if let Some(at) = first(link) {
                    add(known, at, end);
                }
            }
        }
    }

    /// Notes about events of flows and links that occur at no point. `spec` is that of the first
    /// point, and provides the names.
    pub fn notes(&self, spec: &Spec) -> Vec<String> {
        let Some(end) = self.longest else {
            return Vec::new();
        };
        let never = |first: &Option<First>| first.filter(|it| it.is_beyond).map(|it| it.earliest);
        let flows = spec.flows.iter().zip(&self.flows).filter_map(|(flow, first)| {
            let (at, name) = (never(first)?, &flow.name);
            Some(format!(
                "`flow.{name}.start`: {at}, and no run is longer than {end}: the flow never starts"
            ))
        });
        let links = spec.links.iter().zip(&self.links).flat_map(|(link, all)| {
            let name = &link.name;
            LINK_TIMES.iter().zip(all).filter_map(move |((key, what, _), first)| {
                let at = never(first)?;
                Some(format!(
                    "`link.{name}.{key}`: {at} at the earliest, and no run is longer than {end}: {what}"
                ))
            })
        });
        flows.chain(links).collect()
    }
}

/// A time key of a link: its name, the event that does not occur if the time is not reached, and
/// the earliest time in its value.
type LinkTime = (&'static str, &'static str, fn(&Link) -> Option<TimeSpan>);

const LINK_TIMES: [LinkTime; 3] = [
    ("rate", "the rate never changes", |link| {
        let sides = [true, false]
            .into_iter()
            .filter_map(|side| link.rate.side(side));
        let changes = sides.filter_map(|rate| rate.steps().get(1));
        changes.map(|(at, _)| TimeSpan(*at)).min()
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
