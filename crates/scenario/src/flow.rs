//! The flows of a spec: endpoints, workload and transport.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::addresses::IpVersion;
use crate::computed::Computed;
use crate::constellation::Pairs;
use crate::kind_families::Workload;
use crate::quantity::{Count, Size, Span};
use crate::transport::Transport;

/// A flow, or a group of flows: member i runs from member i of `from` to member i of `to` (or to
/// `to`, if that is a single node).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Name.
    pub name: String,
    /// Number of members; 0 removes the flow.
    #[serde(default)]
    pub count: Count,
    /// The sending node.
    pub from: String,
    /// The receiving node.
    pub to: String,
    /// Pairs of members of the two groups, each of which is a member of the flow, instead of
    /// `count`: `"all"`, `[[0, 5], [5, 0]]` by their numbers, or `{ random = 50, seed = 1, both =
    /// true }`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairs: Option<Pairs>,
    /// The resolved pairs.
    #[serde(skip)]
    pub matrix: Computed<Vec<[u32; 2]>>,
    /// Interfaces to use if hosts have several: `[{ from = "wire-1", to = "radio-1" }, ...]`, the
    /// primary path first. SCTP uses all of them, TCP and UDP one. Default: the first interface of
    /// each host.
    #[serde(default)]
    pub paths: Vec<FlowPath>,
    /// IP version.
    #[serde(default)]
    pub ip: IpVersion,
    /// Start of the flow.
    #[serde(default)]
    pub start: Start,
    /// Time at which the sender stops offering data. Default: never.
    #[serde(default)]
    pub stop: Option<Span>,
    /// Time for which each member offers data from its start, instead of `stop`.
    #[serde(default)]
    pub duration: Option<Span>,
    /// Careful Resume (RFC 9959): the name of a store of saved congestion control parameters. Each
    /// association or connection of a flow with this name observes its paths. A later one between
    /// the same addresses starts from these values: it jumps to half of the saved window after its
    /// initial data is acknowledged. SCTP and TCP only.
    #[serde(default)]
    pub resume: Option<String>,
    /// With `resume`: time for which saved parameters are valid. Default: 1 h.
    #[serde(default)]
    pub resume_lifetime: Option<Span>,
    /// With `resume`: maximum window after the jump. Default: unlimited.
    #[serde(default)]
    pub resume_max_jump: Option<Size>,
    /// Workload: amounts and times of the data that the application offers.
    pub workload: Workload,
    /// Transport protocol and its settings.
    pub transport: Transport,
}

/// A path of a flow: the interface of its source and that of its sink, each by the name of its
/// link. For a member of a group of flows these are the interfaces of the hosts of the member.
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

impl Start {
    /// The earliest possible start of a member.
    pub fn earliest(self) -> Span {
        match self {
            Start::Uniform {
                uniform: [earliest, _],
            } => earliest,
            Start::At(time) => time,
        }
    }
}

impl Default for Start {
    fn default() -> Self {
        Start::At(Span(0))
    }
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
