//! The measures of a spec: which scalars a run gives.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::quantity::Window;

/// A measure with, where wanted, names of its own for the result's `series` and `metric`.
pub type MeasureSpec = Metric;

/// A metric and what it is taken of, by its `metric`.
///
/// A flow's name means the group: `goodput` of a group is the sum over its members, a mean is the mean over members,
/// counts are sums. `flow[1]` is one member.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[schemars(tag = "metric")]
pub enum Metric {
    /// Unique payload that reached the receiving application, bit/s over the window.
    Goodput {
        /// The flow.
        flow: String,
        /// The run if left out.
        #[serde(default)]
        window: Option<Window>,
    },
    /// By how much more `of` carried than `over`, % (sums over each group). Series: `of over over`.
    ThroughputIncrease {
        /// The flow compared.
        of: String,
        /// The flow it is compared with.
        over: String,
        /// What counts.
        #[serde(default)]
        counting: Counting,
    },
    /// Use of a link, % of its rate. Series: `all`.
    LinkUtilization {
        /// The link.
        link: String,
        /// What counts.
        #[serde(default)]
        counting: Counting,
    },
    /// Jain's index over the throughputs of all members of the flows. Series: `all`.
    JainFairness {
        /// The flows; all if left out.
        #[serde(default)]
        flows: Vec<String>,
        /// What counts.
        #[serde(default)]
        counting: Counting,
    },
    /// Mean congestion window, segments.
    MeanCwnd {
        /// The flow.
        flow: String,
        /// How samples weigh.
        #[serde(default)]
        weighting: Weighting,
        /// The run if left out.
        #[serde(default)]
        window: Option<Window>,
    },
    /// Data segments sent, retransmissions among them.
    SegmentsSent {
        /// The flow.
        flow: String,
        /// The run if left out.
        #[serde(default)]
        window: Option<Window>,
    },
    /// Retransmissions, by fast retransmit and by timeout.
    Retransmissions {
        /// The flow.
        flow: String,
    },
    /// Times that fast retransmit was entered.
    FastRetransmits {
        /// The flow.
        flow: String,
    },
    /// Times that the retransmission timer expired.
    Timeouts {
        /// The flow.
        flow: String,
    },
    /// Mean time of a message from the sending application to the receiving one, s.
    MeanOneWayDelay {
        /// The flow.
        flow: String,
    },
    /// Packets that a link dropped, both directions, all members.
    Drops {
        /// The link.
        link: String,
        /// One reason, such as `queue-full` or `loss`; all if left out.
        #[serde(default)]
        reason: Option<String>,
    },
}

/// What counts as carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Counting {
    /// Payload that reached the applications, once: the papers' sum of throughputs over the link's rate.
    #[default]
    UniquePayload,
    /// The same with the header that each segment gives its payload, as SCTP's windows and ns-2's packets count it: 16
    /// bytes for each SCTP chunk, nothing for TCP.
    UniqueSegments,
    /// Every byte on the wire, headers and repetitions included.
    Wire,
}

/// How samples of a window weigh in a mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Weighting {
    /// Each value by the time it stood.
    #[default]
    Time,
    /// Each change alike, as a mean over lines of a trace.
    Samples,
}

impl Metric {
    /// The flows it is taken of, each with the key's path.
    pub fn flows(&self) -> Vec<(String, &str)> {
        match self {
            Metric::ThroughputIncrease { of, over, .. } => {
                vec![("of".into(), of), ("over".into(), over)]
            }
            Metric::JainFairness { flows, .. } => flows
                .iter()
                .enumerate()
                .map(|(i, flow)| (format!("flows.{i}"), flow.as_str()))
                .collect(),
            Metric::LinkUtilization { .. } | Metric::Drops { .. } => Vec::new(),
            Metric::Goodput { flow, .. }
            | Metric::MeanCwnd { flow, .. }
            | Metric::SegmentsSent { flow, .. }
            | Metric::Retransmissions { flow }
            | Metric::FastRetransmits { flow }
            | Metric::Timeouts { flow }
            | Metric::MeanOneWayDelay { flow } => vec![("flow".into(), flow)],
        }
    }

    /// The link it is taken of.
    pub fn link(&self) -> Option<&str> {
        match self {
            Metric::LinkUtilization { link, .. } | Metric::Drops { link, .. } => Some(link),
            _ => None,
        }
    }

    /// The part of the run it is taken over, where it is not the whole.
    pub fn window(&self) -> Option<Window> {
        match self {
            Metric::Goodput { window, .. }
            | Metric::MeanCwnd { window, .. }
            | Metric::SegmentsSent { window, .. } => *window,
            _ => None,
        }
    }

    /// The names under which its value stands in the results: series and metric.
    pub fn names(&self) -> (String, String) {
        let of = |entity: &str, metric: &str| (entity.to_owned(), metric.to_owned());
        match self {
            Metric::Goodput { flow, .. } => of(flow, "goodput"),
            Metric::ThroughputIncrease { of: ours, over, .. } => {
                of(&format!("{ours} over {over}"), "throughput_increase")
            }
            Metric::LinkUtilization {
                counting: Counting::Wire,
                ..
            } => of("all", "link_utilization_wire"),
            Metric::LinkUtilization { .. } => of("all", "link_utilization"),
            Metric::JainFairness { .. } => of("all", "jain_fairness"),
            Metric::MeanCwnd {
                flow,
                weighting: Weighting::Time,
                ..
            } => of(flow, "mean_cwnd"),
            Metric::MeanCwnd {
                flow,
                weighting: Weighting::Samples,
                ..
            } => of(flow, "mean_cwnd_samples"),
            Metric::SegmentsSent { flow, .. } => of(flow, "segments_sent"),
            Metric::Retransmissions { flow } => of(flow, "retransmissions"),
            Metric::FastRetransmits { flow } => of(flow, "fast_retransmits"),
            Metric::Timeouts { flow } => of(flow, "timeouts"),
            Metric::MeanOneWayDelay { flow } => of(flow, "mean_one_way_delay"),
            Metric::Drops { link, reason: None } => of(link, "drops"),
            Metric::Drops {
                link,
                reason: Some(reason),
            } => of(link, &format!("drops_{}", reason.replace('-', "_"))),
        }
    }
}
