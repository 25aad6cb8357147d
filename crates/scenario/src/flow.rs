//! Flows of a spec: endpoints, workload and transport.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::addresses::IpVersion;
use crate::computed::Computed;
use crate::constellation::Pairs;
use crate::kind_families::Workload;
use crate::quantity::{GroupSize, Size, TimeSpan};
use crate::transport::Transport;

/// A flow, or a group of flows. In a group, member i runs from member i of `from` to member i of
/// `to`, or to `to` itself if that is a single node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Name of the flow.
    pub name: String,
    /// Number of members; 0 removes the flow.
    #[serde(default)]
    pub count: GroupSize,
    /// Name of the sending node or group.
    pub from: String,
    /// Name of the receiving node or group.
    pub to: String,
    /// Pairs of members of the two groups, in place of `count`; each pair is a member of the flow:
    /// `"all"`, `[[0, 5], [5, 0]]` by the numbers of the members, or `{ random = 50, seed = 1,
    /// both = true }`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairs: Option<Pairs>,
    /// The pairs, resolved to numbers of members.
    #[serde(skip)]
    pub matrix: Computed<Vec<[u32; 2]>>,
    /// Interfaces that the flow uses if hosts have several, the primary path first: `[{ from =
    /// "wire-1", to = "radio-1" }, ...]`. SCTP uses all of these paths; TCP and UDP use one.
    /// Default: the first interface of each host.
    #[serde(default)]
    pub paths: Vec<FlowPath>,
    /// IP version of the flow's packets.
    #[serde(default)]
    pub ip: IpVersion,
    /// Start time of the flow.
    #[serde(default)]
    pub start: StartTime,
    /// Time at which the source stops offering data. Default: never.
    #[serde(default)]
    pub stop: Option<TimeSpan>,
    /// Time for which each member offers data after its start; in place of `stop`.
    #[serde(default)]
    pub duration: Option<TimeSpan>,
    /// Careful Resume (RFC 9959): the name of a store of saved congestion control parameters. Each
    /// association or connection of a flow with this name saves its observations of its paths. A
    /// later one between the same addresses starts from these values: after its initial data is
    /// acknowledged, its window jumps to half of the saved window. SCTP and TCP only.
    #[serde(default)]
    pub resume: Option<String>,
    /// With `resume`: lifetime of the saved parameters. Default: 1 h.
    #[serde(default)]
    pub resume_lifetime: Option<TimeSpan>,
    /// With `resume`: maximum congestion window after the jump. Default: no limit.
    #[serde(default)]
    pub resume_max_jump: Option<Size>,
    /// Workload: sizes and times of the data that the application offers.
    pub workload: Workload,
    /// Transport protocol and its settings.
    pub transport: Transport,
}

/// A path of a flow, given by the interfaces at its source and at its sink. An interface is named
/// by its link. In a group of flows, each member uses the interfaces of its hosts at these links.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowPath {
    /// Link at the source of the flow.
    pub from: String,
    /// Link at the sink of the flow.
    pub to: String,
}

/// Start time of a flow: a time, or a range from which the start of each member is drawn: `{
/// uniform = ["0 s", "1 s"] }`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum StartTime {
    /// Start time that is drawn uniformly from a range.
    Uniform {
        /// Earliest and latest start time.
        uniform: [TimeSpan; 2],
    },
    /// Fixed start time.
    At(TimeSpan),
}

impl StartTime {
    /// Name of this type in the schema of specs.
    pub fn schema_name() -> std::borrow::Cow<'static, str> {
        <Self as JsonSchema>::schema_name()
    }

    /// Earliest possible start time of a member.
    pub fn earliest(self) -> TimeSpan {
        match self {
            StartTime::Uniform {
                uniform: [earliest, _],
            } => earliest,
            StartTime::At(time) => time,
        }
    }
}

impl Default for StartTime {
    fn default() -> Self {
        StartTime::At(TimeSpan(0))
    }
}

impl<'de> Deserialize<'de> for StartTime {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StartVisitor)
    }
}

struct StartVisitor;

impl<'de> serde::de::Visitor<'de> for StartVisitor {
    type Value = StartTime;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a time such as \"0.8 s\", or { uniform = [\"0 s\", \"1 s\"] }")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<StartTime, E> {
        TimeSpan::deserialize(serde::de::value::StrDeserializer::new(text)).map(StartTime::At)
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<StartTime, A::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Drawn {
            uniform: [TimeSpan; 2],
        }
        let drawn = Drawn::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
        if drawn.uniform[0] > drawn.uniform[1] {
            return Err(serde::de::Error::custom(
                "the earliest start lies after the latest",
            ));
        }
        Ok(StartTime::Uniform {
            uniform: drawn.uniform,
        })
    }
}
