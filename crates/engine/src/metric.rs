//! Metrics: they compute the measures of a spec from the counters of a run.
//!
//! A metric is one file here, which declares its name and parameters in specs next to its code, and
//! one line in [`KINDS`]. A program can add metrics with
//! [`Standard::with_metric`](crate::kinds::Standard::with_metric).

use anabranch_scenario::names;
use anabranch_scenario::quantity::Window;
use anabranch_scenario::records::Measure;
use anabranch_scenario::{Flow, Metric as MetricSpec};
use anabranch_settings::{KindEntry, Registry};
use anabranch_sim::workload::Facts;
use anabranch_sim::{Direction, LinkProbes};
use anabranch_transport::{Nanos, Probe};

use crate::agent::observer::{Observer, Observing};

mod assignment;
pub mod common_parameters;
mod counts;
mod cwnd;
mod delay;
mod delivered;
mod delivery_gap;
mod estimate;
mod fairness;
mod heartbeats;
mod link;
mod link_load;
mod message_integrity;
mod message_latency;
pub mod outcome;
mod packets;
pub mod percentiles;
mod probe;
mod queue;
mod resume;
pub mod snapshot;
mod transfers;
pub mod window;

pub use outcome::{FlowOutcome, LinkOutcome, RunData, RunOutcome};
pub use transfers::IdealTransfer;

/// A built metric.
pub type BoxedMetric = Box<dyn Metric>;

/// All metrics, one line for each.
pub const KINDS: &[&KindEntry<BoxedMetric>] = &[
    &delivered::GOODPUT,
    &delivered::SEGMENTS_DELIVERED,
    &delivered::SEGMENT_RATE,
    &transfers::COMPLETION_TIME,
    &transfers::SLOWDOWN,
    &transfers::COMPLETE,
    &transfers::INCOMPLETE,
    &delay::MEAN,
    &delay::DISTRIBUTION,
    &message_latency::ENTRY,
    &probe::ENTRY,
    &percentiles::ENTRY,
    &probe::BLOCKED_BY_RWND,
    &probe::MAX_HELD,
    &counts::STREAM_LIMITS_MET,
    &fairness::THROUGHPUT_INCREASE,
    &link::UTILIZATION,
    &link_load::ENTRY,
    &fairness::JAIN_FAIRNESS,
    &cwnd::ENTRY,
    &counts::SEGMENTS_SENT,
    &counts::RETRANSMISSIONS,
    &counts::FAST_RETRANSMITS,
    &counts::TIMEOUTS,
    &counts::MARK_REDUCTIONS,
    &counts::DUPLICATES_RECEIVED,
    &delivery_gap::RECOVERY_TIME,
    &delivery_gap::MAX_DELIVERY_GAP,
    &message_integrity::REPEATED,
    &message_integrity::MISSING,
    &estimate::ENTRY,
    &heartbeats::ENTRY,
    &packets::ENTRY,
    &link::DROPS,
    &link::MARKS,
    &queue::LENGTH,
    &queue::DELAY,
    &assignment::DELAY,
    &assignment::EFFICIENCY,
    &resume::ENTRY,
];

/// The registry of [`KINDS`], to which a program may add its own.
pub fn kinds() -> Registry<BoxedMetric> {
    Registry::new(KINDS)
}

/// The name of a value in the results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// Subject.
    pub series: String,
    /// The metric.
    pub metric: String,
    /// Unit.
    pub unit: &'static str,
}

impl Name {
    /// `metric` of `series`, in `unit`.
    pub fn new(series: &str, metric: &str, unit: &'static str) -> Self {
        Self {
            series: series.to_owned(),
            metric: metric.to_owned(),
            unit,
        }
    }
}

/// Data that a measure needs from the run, in addition to its observers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Needs {
    /// Messages carry their offer time.
    pub delays: bool,
    /// Messages carry numbers, and are checked off.
    pub numbers: bool,
    /// Transfers are tracked individually.
    pub transfers: bool,
    /// Packets are counted at both ends.
    pub packets: bool,
    /// Moments at which the carried traffic is recorded.
    pub moments: Vec<Nanos>,
}

impl Needs {
    /// Applies `change` to a copy.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

/// Properties of a flow, for checks of measures.
#[derive(Clone, Copy, Debug)]
pub struct FlowFacts<'a> {
    /// The flow in the spec.
    pub flow: &'a Flow,
    /// Properties of its workload.
    pub workload: Facts,
    /// Whether its transport delivers messages.
    pub messages: bool,
    /// Whether its transport has a window and retransmits lost data.
    pub window: bool,
}

/// Lifetime of a member of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Life {
    /// Start.
    pub start: Nanos,
    /// The end of the run.
    pub end: Nanos,
    /// Delay and rate of its path without other traffic, if known.
    pub alone: Option<IdealTransfer>,
}

/// A direction of a link that a measure observes.
#[derive(Clone, Copy, Debug)]
pub struct ObservedDirection<'a> {
    /// The link, or a member of it.
    pub link: &'a str,
    /// The direction.
    pub direction: Direction,
    /// The samples that the measure's observers receive ([`Observer::link`]).
    pub probes: LinkProbes,
}

/// A measure of a spec: its observers during a run, and its results.
pub trait Metric: Send + Sync {
    /// The names of its values in the results.
    fn names(&self) -> Vec<Name>;

    /// The flow, or member, that it observes.
    fn flow(&self) -> Option<&str> {
        None
    }

    /// The direction of a link that it observes instead of a flow.
    fn lane(&self) -> Option<ObservedDirection<'_>> {
        None
    }

    /// Whether its observers watch the members of this flow. By default that is the flow that it
    /// names.
    fn watches(&self, flow: &str) -> bool {
        self.flow()
            .is_some_and(|name| names::Name::parse(name).group == flow)
    }

    /// The data that it needs from the run.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// A flow and a probe that it counts, in addition to those of its observers.
    fn counts(&self) -> Option<(&str, Probe)> {
        None
    }

    /// The observers of a member of the flow, or of the link: one for each of its windows.
    fn observers(&self, life: Life) -> Vec<Box<dyn Observer>> {
        let _ = life;
        Vec::new()
    }

    /// Checks whether it can be measured for the flow that it observes.
    ///
    /// # Errors
    /// The reason why it cannot.
    fn check(&self, flow: &FlowFacts<'_>) -> Result<(), String> {
        let _ = flow;
        Ok(())
    }

    /// Values, in the order of its names. Values that are not finite are left out of the
    /// results.
    fn values(&self, seen: &RunData<'_>) -> Vec<f64>;
}

/// The measures of a run.
#[derive(Default)]
pub struct Measures(Vec<BoxedMetric>);

impl std::fmt::Debug for Measures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list()
            .entries(self.all().flat_map(Metric::names))
            .finish()
    }
}

impl Measures {
    /// The measures of a spec, in order. Invalid ones are skipped because the check of the spec
    /// reports them.
    pub fn new(kinds: &Registry<BoxedMetric>, wanted: &[MetricSpec]) -> Self {
        let made = wanted.iter().filter_map(|metric| make(kinds, metric).ok());
        Self(made.collect())
    }

    /// All of them, in order.
    pub fn all(&self) -> impl Iterator<Item = &dyn Metric> {
        self.0.iter().map(|metric| &**metric)
    }

    /// The combined needs for a flow, without the moments.
    pub fn needs_of(&self, flow: &str) -> Needs {
        let of_flow = self.0.iter().filter(|it| it.watches(flow));
        of_flow.fold(Needs::default(), |all, metric| {
            let needs = metric.needs();
            Needs {
                delays: all.delays || needs.delays,
                numbers: all.numbers || needs.numbers,
                transfers: all.transfers || needs.transfers,
                packets: all.packets || needs.packets,
                moments: Vec::new(),
            }
        })
    }

    /// Whether packets must be counted at both ends.
    pub fn need_packets(&self) -> bool {
        self.0.iter().any(|metric| metric.needs().packets)
    }

    /// The moments at which the carried traffic must be recorded, in order, up to the end of the
    /// run.
    pub fn moments(&self, end: Nanos) -> Vec<Nanos> {
        let wanted = self.0.iter().flat_map(|metric| metric.needs().moments);
        let mut moments: Vec<Nanos> = wanted.map(|at| at.min(end)).collect();
        moments.sort_unstable();
        moments.dedup();
        moments
    }

    /// The observers of a member of a flow.
    pub fn observers(&self, flow: &str, life: Life) -> Vec<Observing> {
        self.observing(life, |metric| metric.watches(flow))
    }

    fn observing(&self, life: Life, wanted: impl Fn(&dyn Metric) -> bool) -> Vec<Observing> {
        let wanted = self
            .0
            .iter()
            .enumerate()
            .filter(|(_, metric)| wanted(&***metric));
        let observing = wanted.flat_map(|(measure, metric)| {
            let windows = metric.observers(life).into_iter().enumerate();
            windows.map(move |(window, observer)| Observing {
                measure,
                window,
                observer,
            })
        });
        observing.collect()
    }

    /// The observers of a direction of member `member` of the `count` of a link, over a run that
    /// ends at `end`, and the samples that they need.
    pub fn lane_observers(
        &self,
        (link, count): (&str, u32),
        member: u32,
        direction: Direction,
        end: Nanos,
    ) -> (LinkProbes, Vec<Observing>) {
        let life = Life {
            start: 0,
            end,
            alone: None,
        };
        let wanted = |metric: &dyn Metric| {
            let lane = metric.lane()?;
            let name = names::Name::parse(lane.link);
            let meant = lane.direction == direction && name.group == link;
            (meant && name.contains(member, count)).then_some(lane.probes)
        };
        let probes = self.0.iter().filter_map(|metric| wanted(&**metric));
        let probes = probes.fold(LinkProbes::default(), LinkProbes::union);
        (
            probes,
            self.observing(life, |metric| wanted(metric).is_some()),
        )
    }

    /// Computes all measures. A measure without a value (nothing was sent, division by zero) is
    /// left out.
    pub fn values(&self, outcome: &RunOutcome) -> Vec<Measure> {
        let each = self.0.iter().enumerate();
        let all = each.flat_map(|(measure, metric)| {
            let seen = RunData::new(outcome, measure);
            // A group that is switched off has no values.
            let off = metric
                .flow()
                .is_some_and(|name| seen.members(name).is_empty());
            let values = if off {
                Vec::new()
            } else {
                metric.values(&seen)
            };
            metric.names().into_iter().zip(values)
        });
        let finite = all.filter(|(_, value)| value.is_finite());
        let measures = finite.map(|(name, value)| Measure {
            series: name.series,
            metric: name.metric,
            value,
            unit: name.unit.to_owned(),
        });
        measures.collect()
    }
}

/// Builds a measure.
pub(crate) fn make(
    kinds: &Registry<BoxedMetric>,
    metric: &MetricSpec,
) -> Result<BoxedMetric, anabranch_settings::Refusal> {
    kinds.build(&metric.kind, &metric.values(kinds), ())
}

/// The window of the whole run.
fn whole(life: Life) -> Window {
    use anabranch_scenario::quantity::Span;
    Window([Span(0), Span(life.end)])
}

#[cfg(test)]
mod tests;
