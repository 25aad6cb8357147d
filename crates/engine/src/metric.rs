//! Metrics, which compute the measures of a spec from the statistics of a run.
//!
//! To add a metric, write one file in this folder with the code of the metric and the declaration
//! of its name and parameters in specs, and add one line to [`KINDS`]. A program can add metrics
//! with [`Standard::with_metric`](crate::kinds::Standard::with_metric).

use anabranch_scenario::names;
use anabranch_scenario::quantity::Window;
use anabranch_scenario::records::Measure;
use anabranch_scenario::{Flow, Metric as MetricSpec};
use anabranch_settings::{KindEntry, Registry};
use anabranch_sim::workload::Facts;
use anabranch_sim::{LinkDirection, LinkProbes};
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

/// All metrics that a spec can name.
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

/// The registry of [`KINDS`], to which a program may add its own metrics.
pub fn kinds() -> Registry<BoxedMetric> {
    Registry::new(KINDS)
}

/// Name and unit of a value in the results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultName {
    /// Flow or link to which the value belongs.
    pub series: String,
    /// Name of the metric.
    pub metric: String,
    /// Unit of the value.
    pub unit: &'static str,
}

impl ResultName {
    /// Name of the value `metric` of `series`, in `unit`.
    pub fn new(series: &str, metric: &str, unit: &'static str) -> Self {
        Self {
            series: series.to_owned(),
            metric: metric.to_owned(),
            unit,
        }
    }
}

/// Data that a metric needs from the run, in addition to its observers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MeasureNeeds {
    /// Whether messages must carry their offer time.
    pub delays: bool,
    /// Whether messages must carry numbers, for the exactly-once check.
    pub numbers: bool,
    /// Whether transfers must be tracked individually.
    pub transfers: bool,
    /// Whether the packets of the flow must be counted at both of its ends.
    pub packets: bool,
    /// Times at which the carried traffic must be recorded, nanoseconds.
    pub moments: Vec<Nanos>,
}

impl MeasureNeeds {
    /// Applies `change` to the value, and returns it.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

/// Properties of a flow from which a metric checks whether it applies to the flow.
#[derive(Clone, Copy, Debug)]
pub struct FlowFacts<'a> {
    /// The flow in the spec.
    pub flow: &'a Flow,
    /// Static properties of the flow's workload.
    pub workload: Facts,
    /// Whether the transport preserves message boundaries.
    pub messages: bool,
    /// Whether the transport has a window and retransmits lost data.
    pub window: bool,
}

/// Start of a member of a flow, end of the run, and delay and rate of the member's path.
#[derive(Clone, Copy, Debug)]
pub struct Life {
    /// Start of the member, nanoseconds.
    pub start: Nanos,
    /// End of the run, nanoseconds.
    pub end: Nanos,
    /// Delay and rate of the member's path without other traffic, if known.
    pub alone: Option<IdealTransfer>,
}

/// A direction of a link that a metric observes.
#[derive(Clone, Copy, Debug)]
pub struct ObservedDirection<'a> {
    /// Name of the link, or of a member of a group of links.
    pub link: &'a str,
    /// The direction.
    pub direction: LinkDirection,
    /// Samples that the observers of the metric receive by [`Observer::link`].
    pub probes: LinkProbes,
}

/// A metric of a spec: its observers during a run, and the computation of its results.
pub trait Metric: Send + Sync {
    /// Names of the metric's values in the results.
    fn names(&self) -> Vec<ResultName>;

    /// Name of the flow, or member of a flow, that the metric observes.
    fn flow(&self) -> Option<&str> {
        None
    }

    /// Direction of a link that the metric observes, if it does not observe a flow.
    fn lane(&self) -> Option<ObservedDirection<'_>> {
        None
    }

    /// Whether the observers of the metric observe the members of `flow`. By default this is the
    /// case only for the flow that the metric names.
    fn watches(&self, flow: &str) -> bool {
        self.flow()
            .is_some_and(|name| names::MemberSelection::parse(name).group == flow)
    }

    /// Data that the metric needs from the run, in addition to its observers.
    fn needs(&self) -> MeasureNeeds {
        MeasureNeeds::default()
    }

    /// A flow and the probe whose samples the metric counts, in addition to the probes of its
    /// observers.
    fn counts(&self) -> Option<(&str, Probe)> {
        None
    }

    /// Creates the observers of a member of the flow or of the link, one for each window.
    fn observers(&self, life: Life) -> Vec<Box<dyn Observer>> {
        let _ = life;
        Vec::new()
    }

    /// Checks whether the metric can be computed for the flow that it observes.
    ///
    /// # Errors
    /// The reason why it cannot be computed.
    fn check(&self, flow: &FlowFacts<'_>) -> Result<(), String> {
        let _ = flow;
        Ok(())
    }

    /// Computes the values, in the order of [`Metric::names`]. Values that are not finite are
    /// omitted from the results.
    fn values(&self, seen: &RunData<'_>) -> Vec<f64>;
}

/// All metrics of a run.
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
    /// Builds the metrics of a spec, in order. Invalid metrics are skipped, because the check of
    /// the spec reports them.
    pub fn new(kinds: &Registry<BoxedMetric>, wanted: &[MetricSpec]) -> Self {
        let made = wanted.iter().filter_map(|metric| make(kinds, metric).ok());
        Self(made.collect())
    }

    /// All metrics, in order.
    pub fn all(&self) -> impl Iterator<Item = &dyn Metric> {
        self.0.iter().map(|metric| &**metric)
    }

    /// Combined needs of all metrics for a flow, without the recording times.
    pub fn needs_of(&self, flow: &str) -> MeasureNeeds {
        let of_flow = self.0.iter().filter(|it| it.watches(flow));
        of_flow.fold(MeasureNeeds::default(), |all, metric| {
            let needs = metric.needs();
            MeasureNeeds {
                delays: all.delays || needs.delays,
                numbers: all.numbers || needs.numbers,
                transfers: all.transfers || needs.transfers,
                packets: all.packets || needs.packets,
                moments: Vec::new(),
            }
        })
    }

    /// Whether a metric needs the packets of its flow to be counted at both ends of the flow.
    pub fn need_packets(&self) -> bool {
        self.0.iter().any(|metric| metric.needs().packets)
    }

    /// Times at which the carried traffic must be recorded, in order, up to the end of the run.
    pub fn moments(&self, end: Nanos) -> Vec<Nanos> {
        let wanted = self.0.iter().flat_map(|metric| metric.needs().moments);
        let mut moments: Vec<Nanos> = wanted.map(|at| at.min(end)).collect();
        moments.sort_unstable();
        moments.dedup();
        moments
    }

    /// Observers of all metrics for a member of `flow`.
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

    /// Observers for one direction of member `member` of `count` members of a link, over a run that
    /// ends at `end`, and the samples that they need.
    pub fn lane_observers(
        &self,
        (link, count): (&str, u32),
        member: u32,
        direction: LinkDirection,
        end: Nanos,
    ) -> (LinkProbes, Vec<Observing>) {
        let life = Life {
            start: 0,
            end,
            alone: None,
        };
        let wanted = |metric: &dyn Metric| {
            let lane = metric.lane()?;
            let name = names::MemberSelection::parse(lane.link);
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

    /// Computes the values of all metrics. A value that cannot be computed, for example because
    /// nothing was sent, is omitted.
    pub fn values(&self, outcome: &RunOutcome) -> Vec<Measure> {
        let each = self.0.iter().enumerate();
        let all = each.flat_map(|(measure, metric)| {
            let seen = RunData::new(outcome, measure);
            // A flow that is switched off has no members, so its metrics have no values.
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

/// Builds a metric from its spec.
pub(crate) fn make(
    kinds: &Registry<BoxedMetric>,
    metric: &MetricSpec,
) -> Result<BoxedMetric, anabranch_settings::KindError> {
    kinds.build(&metric.kind, &metric.values(kinds), ())
}

/// Window of the whole run.
fn whole(life: Life) -> Window {
    use anabranch_scenario::quantity::TimeSpan;
    Window([TimeSpan(0), TimeSpan(life.end)])
}

#[cfg(test)]
mod tests;
