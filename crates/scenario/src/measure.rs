//! The measures of a spec: which scalars a run gives.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::quantity::{Rate, Size, Span, Window};

/// Probes of a link, beside those of a flow ([`anabranch_transport::Probe`]).
pub const LINK_PROBES: &[&str] = &["throughput", "queue", "drop"];
/// The probe of a flow that is no probe of its transport: bit/s in bins that reached the receiving application.
pub const GOODPUT: &str = "goodput";

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
    /// Full segments' worth of unique payload that reached the receiving application: mean over the members.
    SegmentsDelivered {
        /// The flow.
        flow: String,
        /// The run if left out.
        #[serde(default)]
        window: Option<Window>,
        /// From when the window counts.
        #[serde(default)]
        clock: Clock,
    },
    /// The same for each second of the window, segments/s: mean over the members.
    SegmentRate {
        /// The flow.
        flow: String,
        /// The run if left out.
        #[serde(default)]
        window: Option<Window>,
        /// From when the window counts.
        #[serde(default)]
        clock: Clock,
    },
    /// A number made of all samples of a probe of the flow: mean over the members (`count` and `sum`: sum). The measure
    /// has the name given.
    Probe {
        /// The measure's name in results: `mean_streams`.
        name: String,
        /// The flow.
        flow: String,
        /// The probe, such as `peer_rwnd`.
        probe: String,
        /// What is made of the samples.
        take: Take,
        /// For `below`: the value, in the probe's unit.
        #[serde(default)]
        threshold: Option<f64>,
        /// Only samples with this index (of a path or stream); of any index if left out.
        #[serde(default)]
        index: Option<u16>,
        /// The number is divided by this and has no unit then: `mean cwnd / 4380`.
        #[serde(default)]
        per: Option<f64>,
        /// The run if left out.
        #[serde(default)]
        window: Option<Window>,
        /// From when the window counts.
        #[serde(default)]
        clock: Clock,
    },
    /// Share of the time, from the first congestion window on, in which the sender's view of the peer's window was
    /// under `threshold` while the flight was smaller than cwnd: what was sent next was up to the receive buffer.
    BlockedByRwnd {
        /// The flow.
        flow: String,
        /// Bytes: a packet.
        threshold: Size,
        /// The run if left out.
        #[serde(default)]
        window: Option<Window>,
    },
    /// Most bytes that stood in the receive buffer when a SACK was sent: the buffer less the least a_rwnd advertised;
    /// mean over the members.
    MostHeld {
        /// The flow.
        flow: String,
    },
    /// Times that an allocation wanted more streams than were negotiated, a row of such wishes counted once.
    StreamLimitsMet {
        /// The flow.
        flow: String,
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
        /// The run if left out.
        #[serde(default)]
        window: Option<Window>,
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
    /// Data segments sent, retransmissions among them. The measure of one path has the path's number in its name:
    /// `segments_sent_1`.
    SegmentsSent {
        /// The flow.
        flow: String,
        /// Only on this path, 0 for the primary; on all if left out.
        #[serde(default)]
        path: Option<u16>,
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
    /// When the last long silence of the window was over, in which nothing reached the receiving application, counted from
    /// the window's begin, s: with a window that begins where a path fails, the time to resume. Long is what takes at
    /// least half the time of the longest. No value where nothing came after it. Mean over the members.
    TimeToResume {
        /// The flow.
        flow: String,
        /// The run if left out.
        #[serde(default)]
        window: Option<Window>,
    },
    /// The longest time without a delivery to the receiving application, s: mean over the members.
    LongestSilence {
        /// The flow.
        flow: String,
        /// The run if left out.
        #[serde(default)]
        window: Option<Window>,
    },
    /// Messages that reached the receiving application more than once, each time after the first counted. Of a flow over
    /// SCTP with messages of at least 16 B, into which their numbers are written.
    RepeatedMessages {
        /// The flow.
        flow: String,
    },
    /// Messages that the transport took and the receiving application never got. What is under way when a run ends is
    /// missing; a flow that stops in time has nothing under way.
    MissingMessages {
        /// The flow.
        flow: String,
    },
    /// How far the samples of a probe, an estimate, lie from what is true: the mean of |sample - truth| / truth, %.
    EstimateError {
        /// The measure's name in results.
        name: String,
        /// The flow.
        flow: String,
        /// The probe, such as `available_bandwidth`.
        probe: String,
        /// Only samples of this path, 0 for the primary; of all if left out.
        #[serde(default)]
        index: Option<u16>,
        /// From each time on, the true rate: `[["0 s", "1 Mbit/s"], ["15 s", "250 kbit/s"]]`.
        truth: Vec<(Span, Rate)>,
        /// How samples weigh: each alike, or by the time for which it is the last that the sender has.
        #[serde(default = "Weighting::samples")]
        weighting: Weighting,
        /// The run if left out.
        #[serde(default)]
        window: Option<Window>,
    },
    /// Bytes of HEARTBEATs and their answers, as IP packets, % of the unique payload that reached the receiving application.
    HeartbeatOverhead {
        /// The flow.
        flow: String,
        /// Only on this path, 0 for the primary; on all if left out.
        #[serde(default)]
        path: Option<u16>,
    },
    /// Mean time of a message from the sending application to the receiving one, s.
    MeanOneWayDelay {
        /// The flow.
        flow: String,
    },
    /// Packets that carried data of a flow, repetitions included, as a trace of the network shows them. A delay is that of
    /// one packet that arrived, whichever time it was sent.
    Packets {
        /// The flow.
        flow: String,
        /// What is made of them.
        take: PacketTake,
        /// From when a delay counts.
        #[serde(default)]
        from: Since,
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

/// From when a measure's window counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// The begin of the run.
    #[default]
    Run,
    /// The start of each member.
    Flow,
}

/// What is made of the samples of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Take {
    /// The mean, each value by the time it stood.
    Mean,
    /// Share of the time in which the value stood under `threshold`; 0 to 1.
    Below,
    /// The least value that stood.
    Least,
    /// The greatest value that stood.
    Most,
    /// The mean of the samples, each alike.
    SampleMean,
    /// How many samples there were.
    Count,
    /// The sum of the samples.
    Sum,
    /// When the first sample was, seconds from the run's begin; no value where there was none.
    FirstTime,
}

/// What is made of a flow's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PacketTake {
    /// How many the source sent.
    Sent,
    /// How many the sink was given.
    Received,
    /// The one over the other, %.
    ReceivedOverSent,
    /// Mean delay of those received, ms.
    MeanDelay,
    /// What Rafiq's thesis (2007) calls the delay's variance, in ms: the mean of the squared delay in ms^2, over 1000 ms.
    DelaySpread,
    /// The delay's variance, ms^2.
    DelayVariance,
}

impl PacketTake {
    /// The metric's name and unit.
    pub const fn names(self) -> (&'static str, &'static str) {
        match self {
            PacketTake::Sent => ("packets_sent", "packets"),
            PacketTake::Received => ("packets_received", "packets"),
            PacketTake::ReceivedOverSent => ("received_over_sent", "%"),
            PacketTake::MeanDelay => ("mean_delay", "ms"),
            PacketTake::DelaySpread => ("delay_spread", "ms"),
            PacketTake::DelayVariance => ("delay_variance", "ms^2"),
        }
    }
}

/// From when a packet's delay counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Since {
    /// From when the sending host handed it to its interface: what waits there counts.
    #[default]
    Host,
    /// From when the host's wire began to carry it. On a wireless link the same as `host`.
    Wire,
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

impl Weighting {
    fn samples() -> Self {
        Weighting::Samples
    }
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
            | Metric::SegmentsDelivered { flow, .. }
            | Metric::SegmentRate { flow, .. }
            | Metric::Probe { flow, .. }
            | Metric::BlockedByRwnd { flow, .. }
            | Metric::MostHeld { flow }
            | Metric::StreamLimitsMet { flow }
            | Metric::MeanCwnd { flow, .. }
            | Metric::TimeToResume { flow, .. }
            | Metric::LongestSilence { flow, .. }
            | Metric::RepeatedMessages { flow }
            | Metric::MissingMessages { flow }
            | Metric::HeartbeatOverhead { flow, .. }
            | Metric::EstimateError { flow, .. }
            | Metric::SegmentsSent { flow, .. }
            | Metric::Retransmissions { flow }
            | Metric::FastRetransmits { flow }
            | Metric::Timeouts { flow }
            | Metric::Packets { flow, .. }
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
            | Metric::SegmentsDelivered { window, .. }
            | Metric::SegmentRate { window, .. }
            | Metric::Probe { window, .. }
            | Metric::BlockedByRwnd { window, .. }
            | Metric::MeanCwnd { window, .. }
            | Metric::TimeToResume { window, .. }
            | Metric::LongestSilence { window, .. }
            | Metric::EstimateError { window, .. }
            | Metric::LinkUtilization { window, .. }
            | Metric::SegmentsSent { window, .. } => *window,
            _ => None,
        }
    }

    /// From when that part counts.
    pub fn clock(&self) -> Clock {
        match self {
            Metric::SegmentsDelivered { clock, .. }
            | Metric::SegmentRate { clock, .. }
            | Metric::Probe { clock, .. } => *clock,
            _ => Clock::Run,
        }
    }

    /// The names under which its value stands in the results: series and metric.
    pub fn names(&self) -> (String, String) {
        let of = |entity: &str, metric: &str| (entity.to_owned(), metric.to_owned());
        match self {
            Metric::Goodput { flow, .. } => of(flow, "goodput"),
            Metric::SegmentsDelivered { flow, .. } => of(flow, "segments_delivered"),
            Metric::SegmentRate { flow, .. } => of(flow, "segment_rate"),
            Metric::Probe { flow, name, .. } => of(flow, name),
            Metric::BlockedByRwnd { flow, .. } => of(flow, "blocked_by_rwnd"),
            Metric::MostHeld { flow } => of(flow, "most_held"),
            Metric::StreamLimitsMet { flow } => of(flow, "stream_limits_met"),
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
            Metric::SegmentsSent {
                flow, path: None, ..
            } => of(flow, "segments_sent"),
            Metric::SegmentsSent {
                flow,
                path: Some(path),
                ..
            } => of(flow, &format!("segments_sent_{path}")),
            Metric::TimeToResume { flow, .. } => of(flow, "time_to_resume"),
            Metric::LongestSilence { flow, .. } => of(flow, "longest_silence"),
            Metric::RepeatedMessages { flow } => of(flow, "repeated_messages"),
            Metric::MissingMessages { flow } => of(flow, "missing_messages"),
            Metric::EstimateError { flow, name, .. } => of(flow, name),
            Metric::HeartbeatOverhead { flow, .. } => of(flow, "overhead"),
            Metric::Retransmissions { flow } => of(flow, "retransmissions"),
            Metric::FastRetransmits { flow } => of(flow, "fast_retransmits"),
            Metric::Timeouts { flow } => of(flow, "timeouts"),
            Metric::MeanOneWayDelay { flow } => of(flow, "mean_one_way_delay"),
            Metric::Packets { flow, take, .. } => of(flow, take.names().0),
            Metric::Drops { link, reason: None } => of(link, "drops"),
            Metric::Drops {
                link,
                reason: Some(reason),
            } => of(link, &format!("drops_{}", reason.replace('-', "_"))),
        }
    }
}
