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
    /// Congestion window at the k-th change after an event: two measures, `cwnd` (bytes) and `cwnd_time` (s).
    CwndStep {
        /// The flow.
        flow: String,
        /// The event.
        #[serde(default)]
        anchor: Anchor,
        /// 0: the value the event left; 1: after the first change; and so on. -1: just before it.
        step: i32,
    },
    /// When an event happened, s.
    EventTime {
        /// The flow.
        flow: String,
        /// The event.
        event: Anchor,
        /// The segment it concerns, counted from 1; any if left out.
        #[serde(default)]
        segment: Option<u64>,
        /// Which occurrence, counted from 1.
        #[serde(default)]
        occurrence: Option<u32>,
    },
}

/// What a link's utilization counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Counting {
    /// Payload that reached the applications, once: the papers' sum of throughputs over the link's rate.
    #[default]
    UniquePayload,
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

/// An event of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Anchor {
    /// Fast retransmit.
    #[default]
    FastRetransmit,
    /// The retransmission timer expired.
    Timeout,
    /// A segment's first transmission.
    Sent,
    /// A segment's retransmission.
    Retransmitted,
    /// A duplicate acknowledgement.
    DuplicateAck,
    /// A cumulative acknowledgement that advanced.
    CumulativeAck,
}

impl Metric {
    /// The flows it is taken of, each with the key's path.
    pub fn flows(&self) -> Vec<(String, &str)> {
        match self {
            Metric::ThroughputIncrease { of, over } => vec![("of".into(), of), ("over".into(), over)],
            Metric::JainFairness { flows } => {
                flows.iter().enumerate().map(|(i, flow)| (format!("flows.{i}"), flow.as_str())).collect()
            }
            Metric::LinkUtilization { .. } => Vec::new(),
            Metric::Goodput { flow, .. }
            | Metric::MeanCwnd { flow, .. }
            | Metric::SegmentsSent { flow, .. }
            | Metric::CwndStep { flow, .. }
            | Metric::EventTime { flow, .. } => vec![("flow".into(), flow)],
        }
    }

    /// The link it is taken of.
    pub fn link(&self) -> Option<&str> {
        match self {
            Metric::LinkUtilization { link, .. } => Some(link),
            _ => None,
        }
    }
}
