//! Fairness between flows: comparisons of throughputs.

use anabranch_settings::{Kind, KindEntry, kind};

use super::common_parameters::{DELIVERED_COUNTING, DeliveredCounting, FLOW, WINDOW, WINDOWS};
use super::outcome::counted;
use super::window::TimeWindows;
use super::{BoxedMetric, Life, Metric, ResultName, RunData};
use crate::agent::meter::{Meter, MeterKind};
use crate::agent::observer::Observer;

kind! {
    /// Parameters of the comparison of two flows.
    struct Increase {
        /// Flow that is compared.
        of: String as FLOW;
        /// Flow with which `of` is compared.
        over: String as FLOW;
        counting: DeliveredCounting as DELIVERED_COUNTING;
    }
    /// Increase of the throughput of `of` over that of `over`, %; the throughput of a flow is the
    /// sum over its members. The series is named after both flows, as in `sctp over tcp`.
    pub(super) static THROUGHPUT_INCREASE: KindEntry<BoxedMetric> =
        "throughput_increase", |it, ()| Ok(Box::new(it));
}

impl Metric for Increase {
    fn names(&self) -> Vec<ResultName> {
        let series = format!("{} over {}", self.of, self.over);
        vec![ResultName::new(&series, "throughput_increase", "%")]
    }

    fn values(&self, seen: &RunData<'_>) -> Vec<f64> {
        let [ours, theirs] = [&self.of, &self.over]
            .map(|flow| seen.sum(flow, |flow_stats| counted(flow_stats, self.counting)));
        vec![(ours - theirs) / theirs * 100.0]
    }
}

kind! {
    /// Parameters of Jain's index.
    struct Jain {
        /// Flows that are compared. Default: all flows.
        flows: Vec<String> = none, Kind::List(&Kind::Name("flow"));
        /// Count each flow once, with the sum of the throughputs of its members.
        groups: bool = false, Kind::Flag;
        counting: DeliveredCounting as DELIVERED_COUNTING;
        over: TimeWindows as [WINDOW, WINDOWS];
    }
    /// Jain's fairness index over the throughputs of all members of the flows. With `groups` the
    /// index is computed over the flows, each with the sum of the throughputs of its members. The
    /// series is named `groups` in this case, and `all` otherwise.
    pub(super) static JAIN_FAIRNESS: KindEntry<BoxedMetric> = "jain_fairness", |it, ()| Ok(Box::new(it));
}

impl Jain {
    /// Bytes carried by each member of a flow in a window.
    fn carried(&self, seen: &RunData<'_>, flow: &str, window: usize) -> Vec<f64> {
        if self.over.is_whole() {
            let members = seen.members(flow).iter();
            return members
                .map(|flow_stats| counted(flow_stats, self.counting) as f64)
                .collect();
        }
        let meters = seen.observers::<Meter>(flow, window).into_iter();
        let bytes = |meter: &Meter| match self.counting {
            DeliveredCounting::UniquePayload => meter.sum,
            DeliveredCounting::UniqueSegments => meter.weight,
        };
        meters.map(bytes).collect()
    }
}

impl Metric for Jain {
    fn names(&self) -> Vec<ResultName> {
        let series = if self.groups { "groups" } else { "all" };
        self.over.names(series, "jain_fairness", "1")
    }

    fn watches(&self, flow: &str) -> bool {
        let named =
            |name: &String| anabranch_scenario::names::MemberSelection::parse(name).group == flow;
        self.flows.is_empty() || self.flows.iter().any(named)
    }

    fn observers(&self, life: Life) -> Vec<Box<dyn Observer>> {
        if self.over.is_whole() {
            return Vec::new();
        }
        let meter = |window| Meter::new(MeterKind::Delivered, window);
        self.over.observers(life, meter)
    }

    fn values(&self, seen: &RunData<'_>) -> Vec<f64> {
        let flows = seen.outcome.flows.iter();
        let all: Vec<String> = flows.map(|flow| flow.name.clone()).collect();
        let names = if self.flows.is_empty() {
            &all
        } else {
            &self.flows
        };
        let value = |window| {
            let of_flow = |name: &String| {
                let members = self.carried(seen, name, window);
                match self.groups && !members.is_empty() {
                    true => vec![members.iter().sum()],
                    false => members,
                }
            };
            jain(names.iter().flat_map(of_flow))
        };
        (0..self.over.windows().len()).map(value).collect()
    }
}

/// Jain's fairness index of `shares`: 1 if all n shares are equal, and 1 / n if only one is
/// above 0.
fn jain(shares: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut squares, mut count) = (0.0, 0.0, 0.0);
    for share in shares {
        sum += share;
        squares += share * share;
        count += 1.0;
    }
    sum * sum / (count * squares)
}

#[cfg(test)]
mod tests {
    use super::jain;

    /// Bounds of Jain's index for the two groups of Table III of alamgir2002, computed from the
    /// printed increases.
    #[test]
    fn two_groups_of_which_one_has_more() {
        for (increase, expected) in [
            (17.3, 0.9937),
            (15.8, 0.9947),
            (30.6, 0.9827),
            (14.9, 0.9952),
        ] {
            let found = jain([1.0, 1.0 + increase / 100.0].into_iter());
            assert!((found - expected).abs() < 5e-5, "{increase}: {found}");
        }
    }
}
