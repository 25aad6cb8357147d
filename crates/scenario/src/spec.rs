//! A whole spec: the top level of the file, experiments and their sweeps.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de};

use crate::claim::Claim;
use crate::constellation::{Class, Constellation, Ground};
use crate::flow::Flow;
use crate::measure::Metric;
use crate::quantity::{Span, Window};
use crate::reference::ReferenceFiles;
use crate::routes::Route;
use crate::value::Value;
use crate::wifi::{Carrier, Wifi};
use crate::world::{Link, Node, World};
use crate::{derived, output};

/// A whole spec file, decoded with one set of parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Version of the grammar: 1.
    pub anabranch: u32,
    /// Short name: letters, digits, hyphens.
    pub name: String,
    /// One line that says what it is about.
    #[serde(default)]
    pub title: Option<String>,
    /// The paper it reproduces.
    #[serde(default)]
    pub paper: Option<Paper>,
    /// Numbers of others to compare with.
    #[serde(default)]
    pub reference: ReferenceFiles,
    /// What had to be assumed.
    #[serde(default, rename = "assumption", skip_serializing_if = "Vec::is_empty")]
    pub assumptions: Vec<Assumption>,
    /// Values that `"$name"` stands for anywhere else; of any type.
    #[serde(default, skip_serializing_if = "Parameters::is_empty")]
    pub parameters: Parameters,
    /// Profiles of the spec's own: settings and switches of a transport that flows take by `profile = "name"`. The key `base` is
    /// the profile that one starts from.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub profiles: BTreeMap<String, serde_json::Value>,
    /// What holds for the whole world.
    pub world: World,
    /// Hosts and routers.
    #[serde(default, rename = "node", skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<Node>,
    /// Satellites, as nodes and links.
    #[serde(
        default,
        rename = "constellation",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub constellations: Vec<Constellation>,
    /// Stations on the ground that use them.
    #[serde(default, rename = "ground", skip_serializing_if = "Vec::is_empty")]
    pub grounds: Vec<Ground>,
    /// What joins them by wires.
    #[serde(default, rename = "link", skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
    /// What joins them by radio.
    #[serde(default, rename = "wifi", skip_serializing_if = "Vec::is_empty")]
    pub cells: Vec<Wifi>,
    /// Routes that are given; all others are computed, by the fewest links.
    #[serde(default, rename = "route", skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<Route>,
    /// Who talks to whom.
    #[serde(rename = "flow")]
    pub flows: Vec<Flow>,
    /// Measures taken in every experiment.
    #[serde(default, rename = "measure", skip_serializing_if = "Vec::is_empty")]
    pub measures: Vec<Metric>,
    /// What is run. A file without any has one: `main`.
    #[serde(default, rename = "experiment", skip_serializing_if = "Vec::is_empty")]
    pub experiments: Vec<Experiment>,
    /// Experiments computed from the runs of others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub derived: Vec<derived::Derived>,
    /// Tables made of the runs.
    #[serde(default, rename = "table", skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<output::Table>,
    /// Figures made of the runs.
    #[serde(default, rename = "figure", skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<output::Figure>,
    /// What a paper concludes, to be held against the runs.
    #[serde(default, rename = "claim", skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
}

impl Spec {
    /// All links of the world: the wires, the cells, then those of constellations.
    pub fn carriers(&self) -> impl Iterator<Item = Carrier<'_>> {
        let wires = self.links.iter().map(Carrier::Wire);
        let beams = self.constellations.iter().flat_map(|constellation| {
            let classes = Class::ALL.into_iter();
            let there = classes.filter(|class| constellation.transmitter(*class).is_some());
            there.map(move |class| Carrier::Beam(constellation, class))
        });
        wires
            .chain(self.cells.iter().map(Carrier::Air))
            .chain(beams)
    }

    /// All groups of nodes of the world with their number of members: the nodes, the satellites of
    /// constellations, the stations of grounds.
    pub fn groups(&self) -> impl Iterator<Item = (&str, u32)> {
        let nodes = self.nodes.iter();
        let nodes = nodes.map(|node| (node.name.as_str(), node.count.0));
        let satellites = self.constellations.iter();
        let satellites = satellites.map(|it| (it.name.as_str(), it.counted.satellites));
        let stations = self.grounds.iter();
        let stations = stations.map(|it| (it.name.as_str(), it.stations.len() as u32));
        nodes.chain(satellites).chain(stations)
    }

    /// All measures of an experiment: those of the file, then its own; a default set if there are
    /// none.
    pub fn measures_of(&self, experiment: &Experiment) -> Vec<Metric> {
        let named = self.measures.iter().chain(&experiment.measures);
        let named: Vec<Metric> = named.cloned().collect();
        if named.is_empty() {
            self.plain_measures()
        } else {
            named
        }
    }

    /// The measures of a spec that names none.
    fn plain_measures(&self) -> Vec<Metric> {
        let mut all = Vec::new();
        for flow in &self.flows {
            let of_flow = |metric: &str| Metric::new(metric).with("flow", flow.name.as_str());
            all.extend(["goodput", "retransmissions", "timeouts"].map(of_flow));
        }
        for link in self.carriers() {
            all.push(Metric::new("drops").with("link", link.name()));
        }
        all
    }
}

/// Named values of any type, as they stand in the file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Parameters(pub BTreeMap<String, serde_json::Value>);

impl Parameters {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The paper that a spec reproduces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// Who wrote it.
    pub authors: String,
    /// Where and when it appeared.
    pub venue: String,
    /// The question it asks, in a sentence or two.
    #[serde(default)]
    pub about: Option<String>,
}

/// Something the source leaves open, and the choice made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Assumption {
    /// What it is about.
    pub about: String,
    /// The choice and its reason.
    pub text: String,
}

/// One experiment: the world run at each point of its sweeps, several times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Short name: letters, digits, hyphens. File names are made of it.
    pub id: String,
    /// One line that says what it is about.
    #[serde(default)]
    pub title: Option<String>,
    /// Runs of each point, at least 1.
    #[serde(default = "one")]
    pub replications: u32,
    /// Replications under `--quick`; without it 3, or fewer where `replications` is.
    #[serde(default)]
    pub quick_replications: Option<u32>,
    /// Instead of the world's duration.
    #[serde(default)]
    pub duration: Option<Span>,
    /// Instead of the file's parameters of the same names.
    #[serde(default, skip_serializing_if = "Parameters::is_empty")]
    pub parameters: Parameters,
    /// What varies. Several sweeps make every combination, the last varying fastest.
    #[serde(default, rename = "sweep", skip_serializing_if = "Vec::is_empty")]
    pub sweeps: Vec<Sweep>,
    /// Loss models draw the same randomness whatever the experiment's parameters, so that what is compared meets the
    /// same losses: the random streams are named by link alone, not by experiment and point.
    #[serde(default)]
    pub common_losses: bool,
    /// Measures taken in this experiment beside the file's.
    #[serde(default, rename = "measure", skip_serializing_if = "Vec::is_empty")]
    pub measures: Vec<Metric>,
    /// Samples kept.
    #[serde(default, rename = "record", skip_serializing_if = "Vec::is_empty")]
    pub records: Vec<Record>,
}

impl Experiment {
    /// Replications under `--quick`.
    pub fn first_look(&self) -> u32 {
        let few = self.quick_replications.unwrap_or(QUICK_REPLICATIONS);
        few.min(self.replications)
    }
}

/// Default number of replications under `--quick`.
const QUICK_REPLICATIONS: u32 = 3;

fn one() -> u32 {
    1
}

/// What varies in an experiment: either `points`, each with an `x` and the parameters it sets, or one `parameter` with
/// its `values`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// Name of the x axis in tables and figures; the parameter's name if left out.
    #[serde(default)]
    pub name: Option<String>,
    /// Text for an axis or a column head.
    #[serde(default)]
    pub label: Option<String>,
    /// The points: `{ x = 2, pairs = 1, rate = "2 Mbit/s" }`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<SweepPoint>,
    /// The parameter that takes each of `values`.
    #[serde(default)]
    pub parameter: Option<String>,
    /// The values, each an x of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<serde_json::Value>,
}

impl Sweep {
    /// The name of its x in tables.
    pub fn x_name(&self) -> Option<&str> {
        self.name.as_deref().or(self.parameter.as_deref())
    }

    /// The x values, in order.
    pub fn xs(&self) -> Vec<Value> {
        let listed = self.points.iter().map(|point| point.x.clone());
        let values = self.values.iter().cloned();
        listed
            .chain(values.filter_map(|value| serde_json::from_value(value).ok()))
            .collect()
    }
}

/// One point of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepPoint {
    /// Where it stands on the x axis: a number or text.
    #[schemars(with = "serde_json::Value")]
    pub x: Value,
    /// The parameters it sets.
    #[serde(flatten)]
    pub parameters: BTreeMap<String, serde_json::Value>,
}

/// Samples to keep of a flow or of a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// A flow (each member of the group).
    #[serde(default)]
    pub flow: Option<String>,
    /// Or a link (each member, direction forward).
    #[serde(default)]
    pub link: Option<String>,
    /// Or a constellation, its links and the flows over it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constellation: Option<String>,
    /// What of it. Flows: `cwnd, ssthresh, flightsize, sent, cumulative_ack, ...`, and `goodput` in bins; links:
    /// `throughput, queue, drop`; constellations: `position, utilization, path`, once in each bin.
    pub probes: Vec<String>,
    /// From when to when; the whole run if left out.
    #[serde(default)]
    pub window: Option<Window>,
    /// Which replications, counted from 0: `[0, 2]`, or `"all"`; the first if left out.
    #[serde(default)]
    pub replications: Option<Recorded>,
    /// Width of a bin for probes that count over time (`throughput`, `goodput`), and between samples
    /// of a constellation; a second if left out.
    #[serde(default)]
    pub bin: Option<Span>,
}

impl Record {
    /// Whether samples of this replication are kept.
    pub fn wants(&self, replication: u32) -> bool {
        match &self.replications {
            Some(Recorded::All) => true,
            Some(Recorded::These(wanted)) => wanted.contains(&replication),
            None => replication == 0,
        }
    }
}

/// Replications whose samples are kept.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Recorded {
    /// Every one: `"all"`.
    #[serde(serialize_with = "all")]
    #[schemars(with = "AllWord")]
    All,
    /// These, counted from 0.
    These(Vec<u32>),
}

#[derive(JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[allow(dead_code)]
enum AllWord {
    All,
}

fn all<S: serde::Serializer>(serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str("all")
}

impl<'de> Deserialize<'de> for Recorded {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Which;
        impl<'de> de::Visitor<'de> for Which {
            type Value = Recorded;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of replications such as [0, 2], or \"all\"")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Recorded, E> {
                match text {
                    "all" => Ok(Recorded::All),
                    _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
                }
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<Recorded, A::Error> {
                let mut these = Vec::new();
                while let Some(replication) = seq.next_element()? {
                    these.push(replication);
                }
                Ok(Recorded::These(these))
            }
        }
        deserializer.deserialize_any(Which)
    }
}
