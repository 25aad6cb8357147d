//! The flows of a spec: who sends what to whom, by which transport.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::addresses::IpVersion;
use crate::quantity::{Amount, Count, Rate, Size, Span};

/// A flow, or a group of them: member i runs from member i of `from` to member i of `to` (or to the one `to`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Its name.
    pub name: String,
    /// How many; at least 1.
    #[serde(default)]
    pub count: Count,
    /// The sending node.
    pub from: String,
    /// The receiving node.
    pub to: String,
    /// The interfaces it uses, where its hosts have several: `[{ from = "wire-1", to = "radio-1" }, ...]`, the
    /// primary path first. SCTP uses all of them, TCP and UDP one. The first interface of each host if left out.
    #[serde(default)]
    pub paths: Vec<FlowPath>,
    /// The IP version that it speaks.
    #[serde(default)]
    pub ip: IpVersion,
    /// When it opens.
    #[serde(default)]
    pub start: Start,
    /// When the sender stops offering data; never if left out.
    #[serde(default)]
    pub stop: Option<Span>,
    /// How long each member offers data from its own start, instead of `stop`.
    #[serde(default)]
    pub lasts: Option<Span>,
    /// What the application offers.
    pub workload: Workload,
    /// What carries it.
    pub transport: Protocol,
}

/// A path of a flow: the interface of its source and the interface of its sink, each by the link it is at. A member
/// of a group of flows means its own host's interface at the link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowPath {
    /// The link at the source.
    pub from: String,
    /// The link at the sink.
    pub to: String,
}

/// When a flow starts: a time, or `{ uniform = ["0 s", "1 s"] }`, drawn for each member.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Start {
    /// Drawn uniformly.
    Uniform {
        /// Earliest and latest.
        uniform: [Span; 2],
    },
    /// At that time.
    At(Span),
}

impl Default for Start {
    fn default() -> Self {
        Start::At(Span(0))
    }
}

/// What an application offers, and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(tag = "kind")]
pub enum Workload {
    /// Always more to send, as ftp.
    Bulk {
        /// Size of a message (SCTP) or of a write; the largest that fills a packet if left out.
        #[serde(default)]
        message: Option<Size>,
        /// How much in all; without end if left out.
        #[serde(default)]
        total: Option<Size>,
    },
    /// One message after the other at a constant rate.
    Cbr {
        /// Of user data.
        rate: Rate,
        /// Size of a message.
        message: Size,
    },
    /// CBR while on, silent while off.
    OnOff {
        /// Of user data, while on.
        rate: Rate,
        /// Size of a message.
        message: Size,
        /// Mean (or fixed) length of an on period.
        on: Span,
        /// Mean (or fixed) length of an off period.
        off: Span,
        /// Periods are exponentially distributed rather than fixed.
        #[serde(default)]
        exponential: bool,
    },
    /// A list of messages.
    Trace {
        /// What is sent when.
        messages: Vec<TraceMessage>,
    },
}

/// One message of a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceMessage {
    /// When, from the flow's start.
    pub at: Span,
    /// How large.
    pub size: Size,
    /// On which stream.
    #[serde(default)]
    pub stream: u16,
}

/// The value of a transport's switch: a number, a truth value, or text with a unit.
pub type Switches = BTreeMap<String, serde_json::Value>;

/// The transport of a flow, by its `protocol`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(tag = "protocol")]
#[allow(
    clippy::large_enum_variant,
    reason = "a spec has few flows, and each is decoded once"
)]
pub enum Protocol {
    /// TCP.
    Tcp {
        /// `rfc6675`, `sack1` (as ns-2), `newreno`.
        #[serde(default)]
        profile: Option<String>,
        /// Switches of the profile, by name.
        #[serde(default)]
        switches: Switches,
        /// Payload of a full segment.
        #[serde(default)]
        segment: Option<Size>,
        /// Largest window the receiver offers.
        #[serde(default)]
        receive_window: Option<Amount>,
        /// First window.
        #[serde(default)]
        initial_window: Option<Amount>,
        /// First slow-start threshold.
        #[serde(default)]
        initial_ssthresh: Option<Amount>,
        /// Acknowledge every second segment.
        #[serde(default)]
        delayed_ack: Option<bool>,
        /// New segments on the first two duplicate acknowledgements (RFC 3042).
        #[serde(default)]
        limited_transmit: Option<bool>,
        /// Round-trip times are measured in whole ticks of this clock.
        #[serde(default)]
        clock_tick: Option<Span>,
        /// Floor of the retransmission timeout.
        #[serde(default)]
        rto_min: Option<Span>,
    },
    /// SCTP.
    Sctp {
        /// `rfc9260`, `rfc4960`, `rfc2960`, `ns2`.
        #[serde(default)]
        profile: Option<String>,
        /// Switches of the profile, by name.
        #[serde(default)]
        switches: Switches,
        /// Congestion control: `sctp` (RFC 9260 §7.2; this if left out), `westwood`, `binomial`, `rsctp` (with the switch
        /// `rsctp`).
        #[serde(default)]
        congestion: Option<String>,
        /// Largest IP packet.
        #[serde(default)]
        mtu: Option<Size>,
        /// Find out what each path carries, up to `mtu` (RFC 8899); not if left out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path_mtu_discovery: Option<bool>,
        /// Outbound streams to negotiate. How many of them are in use, `allocation` says.
        #[serde(default)]
        streams: Option<u16>,
        /// How many of the negotiated streams carry the messages that name none, in turn; all if left out.
        #[serde(default)]
        allocation: Option<Allocation>,
        /// The rate estimate kept of each path: `westwood_re`, `westwood_be`, `westwood_abse`, `westwood_plus`. An
        /// allocation that needs one has `westwood_re` if left out.
        #[serde(default)]
        rate_estimate: Option<String>,
        /// Receive buffer.
        #[serde(default)]
        receive_buffer: Option<Size>,
        /// A message of which so much has come is delivered in parts; if left out, only one that fills the receive buffer is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        partial_delivery_point: Option<Size>,
        /// How fast the receiving application reads; it is always ready if left out.
        #[serde(default)]
        reading_rate: Option<Rate>,
        /// First window.
        #[serde(default)]
        initial_window: Option<Amount>,
        /// First slow-start threshold.
        #[serde(default)]
        initial_ssthresh: Option<Amount>,
        /// Acknowledge every second packet.
        #[serde(default)]
        delayed_sack: Option<bool>,
        /// Messages may overtake one another.
        #[serde(default)]
        unordered: bool,
        /// Interval of heartbeats; `"0 s"` for none.
        #[serde(default)]
        heartbeat_interval: Option<Span>,
        /// Retransmission timeout before the first measurement.
        #[serde(default)]
        rto_initial: Option<Span>,
        /// Floor of the retransmission timeout; 1 s if left out.
        #[serde(default)]
        rto_min: Option<Span>,
        /// Ceiling of the retransmission timeout; 60 s if left out.
        #[serde(default)]
        rto_max: Option<Span>,
        /// A path with more errors in a row is inactive; 5 if left out.
        #[serde(default)]
        path_max_retrans: Option<u32>,
        /// With the switch `potentially_failed`: a path with more errors in a row is potentially failed; 0 if left out.
        #[serde(default)]
        pf_max_retrans: Option<u32>,
        /// With more errors in a row the primary path gives its office to another for good; never if left out.
        #[serde(default)]
        primary_switch_max_retrans: Option<u32>,
        /// With more errors in a row on all paths together the association has failed; 10 if left out.
        #[serde(default)]
        association_max_retrans: Option<u32>,
        /// Use every interface of both hosts, the first with the first and so on, rather than the first of each; `paths`
        /// of the flow can say more.
        #[serde(default)]
        multihomed: bool,
    },
    /// UDP, for cross traffic.
    Udp {},
}

/// How many of the negotiated streams are in use. The adaptive ones judge each loss by `cwnd - RE x RTT x weight`:
/// above 0 it is congestion, else a bad link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(tag = "kind")]
pub enum Allocation {
    /// All.
    Negotiated {},
    /// Always so many.
    Fixed {
        /// At least 1.
        streams: u16,
    },
    /// One after congestion, several after a loss of the link (Tsunoda et al. 2007, Fig. 3).
    Adaptive {
        /// How many are several; 4 if left out.
        #[serde(default)]
        streams: Option<u16>,
        /// Weight while one stream is in use; 1.4 if left out.
        #[serde(default)]
        weight_single: Option<f64>,
        /// Weight while several are in use; 1.6 if left out.
        #[serde(default)]
        weight_multiple: Option<f64>,
        /// The time that makes a window of the rate estimate: `least`, `smoothed`, or a time such as `"1 s"`; `least`
        /// if left out.
        #[serde(default)]
        round_trip: Option<String>,
        /// What counts as one loss; `per-sack` if left out.
        #[serde(default)]
        loss_events: Option<LossEvents>,
        /// So long without a retransmission, asked as often, ends the use of several; 5 s if left out, `"0 s"` for
        /// never.
        #[serde(default)]
        quiet: Option<Span>,
    },
    /// One less after congestion, one more after a loss of the link (Tsunoda et al. 2007, Fig. 11).
    AdaptiveStep {
        /// Weight while one stream is in use; 1.4 if left out.
        #[serde(default)]
        weight_single: Option<f64>,
        /// Weight while several are in use; 1.6 if left out.
        #[serde(default)]
        weight_multiple: Option<f64>,
        /// The time that makes a window of the rate estimate: `least`, `smoothed`, or a time such as `"1 s"`; `least`
        /// if left out.
        #[serde(default)]
        round_trip: Option<String>,
        /// What counts as one loss; `per-sack` if left out.
        #[serde(default)]
        loss_events: Option<LossEvents>,
        /// So long without a retransmission, asked as often, returns to one; 5 s if left out, `"0 s"` for never.
        #[serde(default)]
        quiet: Option<Span>,
    },
}

/// What counts as one loss for an adaptive allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LossEvents {
    /// Each SACK that brings chunks to the threshold of missing reports.
    PerSack,
    /// Each chunk that reaches it.
    PerChunk,
    /// Each cut of a congestion window.
    PerCut,
}

impl<'de> Deserialize<'de> for Start {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StartVisitor)
    }
}

struct StartVisitor;

impl<'de> serde::de::Visitor<'de> for StartVisitor {
    type Value = Start;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a time such as \"0.8 s\", or { uniform = [\"0 s\", \"1 s\"] }")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Start, E> {
        Span::deserialize(serde::de::value::StrDeserializer::new(text)).map(Start::At)
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Start, A::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Drawn {
            uniform: [Span; 2],
        }
        let drawn = Drawn::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
        if drawn.uniform[0] > drawn.uniform[1] {
            return Err(serde::de::Error::custom(
                "the earliest start lies after the latest",
            ));
        }
        Ok(Start::Uniform {
            uniform: drawn.uniform,
        })
    }
}
