//! Metrics of links: utilisation, drops and marks.

use anabranch_scenario::names::MemberSelection as Of;
use anabranch_scenario::quantity::Window;
use anabranch_settings::{Choice, Kind, KindEntry, kind};
use anabranch_sim::{DropReason, LinkStats};
use anabranch_transport::{Nanos, time};

use super::common_parameters::{COUNTING, Counting, LINK, WINDOW, WINDOWS};
use super::snapshot::TrafficSnapshot;
use super::window::TimeWindows;
use super::{BoxedMetric, MeasureNeeds, Metric, ResultName, RunData};

kind! {
    /// Parameters of the utilisation of a link.
    struct Utilization {
        link: String as LINK;
        counting: Counting as COUNTING;
        over: TimeWindows as [WINDOW, WINDOWS];
    }
    /// Utilisation of a link, % of its rate. By default it is the sum of the throughputs of all
    /// flows, divided by the rate of the link, as papers define it. With `counting = "wire"` it is
    /// computed from the bytes on the wire in the forward direction, and the name ends with
    /// `_wire`. The series is named `all`.
    pub(super) static UTILIZATION: KindEntry<BoxedMetric> = "link_utilization", |it, ()| Ok(Box::new(it));
}

impl Metric for Utilization {
    fn names(&self) -> Vec<ResultName> {
        let name = match self.counting {
            Counting::Wire => "link_utilization_wire",
            _ => "link_utilization",
        };
        self.over.names("all", name, "%")
    }

    fn needs(&self) -> MeasureNeeds {
        let windows = self.over.windows().flatten();
        MeasureNeeds {
            moments: windows
                .flat_map(|window| window.0.map(|end| end.0))
                .collect(),
            ..MeasureNeeds::default()
        }
    }

    fn values(&self, seen: &RunData<'_>) -> Vec<f64> {
        let value = |window| utilization(seen, &self.link, self.counting, window);
        self.over.windows().map(value).collect()
    }
}

/// Utilisation of a link, %. NaN if no data is available for the window.
fn utilization(seen: &RunData<'_>, name: &str, counting: Counting, window: Option<Window>) -> f64 {
    let outcome = seen.outcome;
    let parsed = Of::parse(name);
    let mut links = outcome.links.iter();
    let Some(link) = links.position(|link| link.name == parsed.group) else {
        return f64::NAN;
    };
    let range = parsed.range(outcome.links[link].members.len() as u32);
    let carried = |at: Nanos| {
        let mark = outcome.marks.iter().find(|mark| mark.at == at);
        mark.map(|mark| mark.bytes(link, &range, counting))
    };
    let [begin, end] = window.map_or([0, outcome.duration], |window| {
        window.0.map(|end| end.0.min(outcome.duration))
    });
    let bytes = match (carried(begin), carried(end)) {
        (Some(before), Some(after)) => after - before,
        _ if window.is_none() => at_the_end(seen).bytes(link, &range, counting),
        _ => return f64::NAN,
    };
    let members = seen.link_members(name).len() as f64;
    let rate = outcome.links[link].rate.mean(begin, end);
    let capacity = rate * members * time::seconds(end - begin);
    bytes as f64 * 8.0 / capacity * 100.0
}

/// Snapshot of the traffic carried until the end of the run.
fn at_the_end(seen: &RunData<'_>) -> TrafficSnapshot {
    let outcome = seen.outcome;
    let links = outcome.links.iter().map(|link| link.members.clone());
    let tallies = outcome.flows.iter().flat_map(|flow| &flow.members);
    TrafficSnapshot::read(outcome.duration, links, tallies)
}

kind! {
    /// The parameters of [`Drops`].
    struct DropsConfig {
        link: String as LINK;
        /// One reason, such as `queue-full` or `loss`, or `each` for a separate value per reason.
        /// Default: the sum over all reasons.
        reason: Option<String> = none, Kind::Registered(reasons);
    }
    /// Number of packets that a link dropped, over both directions and all members. With `reason`
    /// the value is named `drops_` and the reason.
    pub(super) static DROPS: KindEntry<BoxedMetric> = "drops", |it, ()| Ok(Box::new(Drops {
        reasons: match it.reason.as_deref() {
            None => vec![None],
            Some(EACH) => DropReason::ALL.iter().copied().map(Some).collect(),
            Some(reason) => vec![DropReason::from_name(reason)],
        },
        link: it.link,
    }));
}

/// Value of `reason` for a separate value per reason.
const EACH: &str = "each";

fn reasons() -> Vec<Choice> {
    let all = DropReason::ALL.iter().map(|reason| reason.name());
    all.chain([EACH]).map(Choice::new).collect()
}

struct Drops {
    link: String,
    /// Reasons to count; `None` is the sum over all reasons.
    reasons: Vec<Option<DropReason>>,
}

impl Metric for Drops {
    fn names(&self) -> Vec<ResultName> {
        let name = |reason: &Option<DropReason>| match reason {
            None => "drops".to_owned(),
            Some(reason) => format!("drops_{}", reason.name().replace('-', "_")),
        };
        let names = self.reasons.iter().map(name);
        names
            .map(|name| ResultName::new(&self.link, &name, "packets"))
            .collect()
    }

    fn values(&self, seen: &RunData<'_>) -> Vec<f64> {
        let count = |reason: &Option<DropReason>| {
            over_members(seen, &self.link, |stats| match reason {
                Some(reason) => stats.dropped.count(*reason),
                None => stats.dropped.total(),
            })
        };
        self.reasons.iter().map(count).collect()
    }
}

kind! {
    /// Parameter of the marks of a link.
    struct Marks {
        link: String as LINK;
    }
    /// Number of packets that the queues of a link marked with CE (ECN), over both directions and
    /// all members.
    pub(super) static MARKS: KindEntry<BoxedMetric> = "marks", |it, ()| Ok(Box::new(it));
}

impl Metric for Marks {
    fn names(&self) -> Vec<ResultName> {
        vec![ResultName::new(&self.link, "marks", "packets")]
    }

    fn values(&self, seen: &RunData<'_>) -> Vec<f64> {
        vec![over_members(seen, &self.link, |stats| stats.marked)]
    }
}

/// Sum of a counter over both directions of all members of a link.
fn over_members(seen: &RunData<'_>, link: &str, of: impl Fn(&LinkStats) -> u64) -> f64 {
    let members = seen.link_members(link);
    if members.is_empty() {
        return f64::NAN;
    }
    members.iter().flatten().map(of).sum::<u64>() as f64
}
