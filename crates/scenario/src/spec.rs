//! Whole spec: the top level of the file, experiments and their sweeps.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de};

use crate::claim::Claim;
use crate::constellation::{Class, Constellation, Ground};
use crate::flow::Flow;
use crate::measure::Metric;
use crate::quantity::{TimeSpan, Window};
use crate::reference::ReferenceFiles;
use crate::routes::Route;
use crate::value::SweepValue;
use crate::wifi::{LinkMedium, Wifi};
use crate::world::{Link, Node, World};
use crate::{derived, output};

/// A whole spec file, decoded with one set of parameter values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Version of the grammar: 1.
    pub anabranch: u32,
    /// Short name: letters, digits, hyphens.
    pub name: String,
    /// Title, one line.
    #[serde(default)]
    pub title: Option<String>,
    /// The paper that the spec reproduces.
    #[serde(default)]
    pub paper: Option<Paper>,
    /// Files with published results, or results of other programs, for comparison.
    #[serde(default)]
    pub reference: ReferenceFiles,
    /// Assumptions about details that the source does not state.
    #[serde(default, rename = "assumption", skip_serializing_if = "Vec::is_empty")]
    pub assumptions: Vec<Assumption>,
    /// Values of any type, to which other sections refer as `"$name"`.
    #[serde(default, skip_serializing_if = "Parameters::is_empty")]
    pub parameters: Parameters,
    /// Profiles of this spec: settings of a transport, which flows select by `profile = "name"`.
    /// The key `base` is the name of the profile from which a profile starts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub profiles: BTreeMap<String, serde_json::Value>,
    /// Properties of the whole simulation, such as its duration.
    pub world: World,
    /// Hosts and routers.
    #[serde(default, rename = "node", skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<Node>,
    /// Constellations of satellites: nodes and the links between them.
    #[serde(
        default,
        rename = "constellation",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub constellations: Vec<Constellation>,
    /// Ground stations of constellations.
    #[serde(default, rename = "ground", skip_serializing_if = "Vec::is_empty")]
    pub grounds: Vec<Ground>,
    /// Point-to-point links.
    #[serde(default, rename = "link", skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
    /// IEEE 802.11 cells.
    #[serde(default, rename = "wifi", skip_serializing_if = "Vec::is_empty")]
    pub cells: Vec<Wifi>,
    /// Static routes. All other routes are computed, and use the fewest links.
    #[serde(default, rename = "route", skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<Route>,
    /// Flows of data between nodes.
    #[serde(rename = "flow")]
    pub flows: Vec<Flow>,
    /// Measures of all experiments.
    #[serde(default, rename = "measure", skip_serializing_if = "Vec::is_empty")]
    pub measures: Vec<Metric>,
    /// Experiments. A file without this section has one experiment, `main`.
    #[serde(default, rename = "experiment", skip_serializing_if = "Vec::is_empty")]
    pub experiments: Vec<Experiment>,
    /// Experiments that are computed from the results of others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub derived: Vec<derived::Derived>,
    /// Tables of results.
    #[serde(default, rename = "table", skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<output::TableOutput>,
    /// Figures of results.
    #[serde(default, rename = "figure", skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<output::FigureOutput>,
    /// Conclusions of a paper, which are tested against the results.
    #[serde(default, rename = "claim", skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
}

impl Spec {
    /// All links of the world: wires, cells, and links of constellations, in this order.
    pub fn carriers(&self) -> impl Iterator<Item = LinkMedium<'_>> {
        let wires = self.links.iter().map(LinkMedium::Wire);
        let beams = self.constellations.iter().flat_map(|constellation| {
            let classes = Class::ALL.into_iter();
            let there = classes.filter(|class| constellation.transmitter(*class).is_some());
            there.map(move |class| LinkMedium::Beam(constellation, class))
        });
        wires
            .chain(self.cells.iter().map(LinkMedium::Air))
            .chain(beams)
    }

    /// All groups of nodes with their numbers of members: nodes, satellites of constellations, and
    /// stations of grounds.
    pub fn groups(&self) -> impl Iterator<Item = (&str, u32)> {
        let nodes = self.nodes.iter();
        let nodes = nodes.map(|node| (node.name.as_str(), node.count.0));
        let satellites = self.constellations.iter();
        let satellites = satellites.map(|it| (it.name.as_str(), it.counted.satellites));
        let stations = self.grounds.iter();
        let stations = stations.map(|it| (it.name.as_str(), it.stations.len() as u32));
        nodes.chain(satellites).chain(stations)
    }

    /// All measures of an experiment: those of the file, then those of the experiment; a default
    /// set if there are none.
    pub fn measures_of(&self, experiment: &Experiment) -> Vec<Metric> {
        let named = self.measures.iter().chain(&experiment.measures);
        let named: Vec<Metric> = named.cloned().collect();
        if named.is_empty() {
            self.plain_measures()
        } else {
            named
        }
    }

    /// Default set of measures, for a spec that names none.
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

/// Named values of any type, as written in the file.
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
    /// Authors of the paper.
    pub authors: String,
    /// Journal or conference, and year.
    pub venue: String,
    /// Question of the paper, in a sentence or two.
    #[serde(default)]
    pub about: Option<String>,
}

/// A detail that the source does not state, and the choice that was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Assumption {
    /// Subject of the assumption.
    pub about: String,
    /// The choice and its reason.
    pub text: String,
}

/// An experiment: runs of the world at each point of its sweeps, with several replications per
/// point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Short name: letters, digits, hyphens. It is used in file names.
    pub id: String,
    /// Title, one line.
    #[serde(default)]
    pub title: Option<String>,
    /// Number of runs of each point, at least 1.
    #[serde(default = "one")]
    pub replications: u32,
    /// Number of replications with `--quick`. Default: 3, or `replications` if that is smaller.
    #[serde(default)]
    pub quick_replications: Option<u32>,
    /// Duration of runs, which replaces that of `[world]`.
    #[serde(default)]
    pub duration: Option<TimeSpan>,
    /// Values of parameters, which replace the values in `[parameters]`.
    #[serde(default, skip_serializing_if = "Parameters::is_empty")]
    pub parameters: Parameters,
    /// Sweeps over values of parameters. With several sweeps every combination of their points is
    /// run; the last sweep varies fastest.
    #[serde(default, rename = "sweep", skip_serializing_if = "Vec::is_empty")]
    pub sweeps: Vec<Sweep>,
    /// Common random numbers: components draw the same random numbers at all points, so that all
    /// variants have the same losses. The random streams are then named by the component alone, and
    /// not by experiment and point.
    #[serde(default)]
    pub common_random_numbers: bool,
    /// Measures of this experiment, in addition to those of the file.
    #[serde(default, rename = "measure", skip_serializing_if = "Vec::is_empty")]
    pub measures: Vec<Metric>,
    /// Samples to record.
    #[serde(default, rename = "record", skip_serializing_if = "Vec::is_empty")]
    pub records: Vec<Record>,
}

impl Experiment {
    /// Number of replications with `--quick`.
    pub fn first_look(&self) -> u32 {
        let few = self.quick_replications.unwrap_or(QUICK_REPLICATIONS);
        few.min(self.replications)
    }
}

/// Default number of replications with `--quick`.
const QUICK_REPLICATIONS: u32 = 3;

fn one() -> u32 {
    1
}

/// A sweep. It has either `points`, each with an `x` and the parameters that it sets, or one
/// `parameter` with its `values`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// Name of the x values in tables and figures. Default: the name of the parameter.
    #[serde(default)]
    pub name: Option<String>,
    /// Label of the axis in figures and of the column in tables.
    #[serde(default)]
    pub label: Option<String>,
    /// Points with their x and parameters: `{ x = 2, pairs = 1, rate = "2 Mbit/s" }`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<SweepPoint>,
    /// Name of the parameter that takes each of `values`.
    #[serde(default)]
    pub parameter: Option<String>,
    /// Values of `parameter`. Each value is also the x of its point.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<serde_json::Value>,
}

impl Sweep {
    /// Name of the x values in tables.
    pub fn x_name(&self) -> Option<&str> {
        self.name.as_deref().or(self.parameter.as_deref())
    }

    /// All x values, in order.
    pub fn xs(&self) -> Vec<SweepValue> {
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
    /// x of the point: a number or a text.
    #[schemars(with = "serde_json::Value")]
    pub x: SweepValue,
    /// Parameters that the point sets, by name.
    #[serde(flatten)]
    pub parameters: BTreeMap<String, serde_json::Value>,
}

/// A record: samples of a flow, a link or a constellation that are stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Flow that is recorded; for a group, all members.
    #[serde(default)]
    pub flow: Option<String>,
    /// Link that is recorded in its forward direction; for a group, all members.
    #[serde(default)]
    pub link: Option<String>,
    /// Constellation that is recorded, with its links and the flows over it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constellation: Option<String>,
    /// Names of probes. Flows have `cwnd`, `ssthresh`, `flightsize`, `sent`, `cumulative_ack` and
    /// others, and `goodput` in bins. Links have `throughput`, `queue` and `drop`.
    pub probes: Vec<String>,
    /// Start and end of the recording. Default: the whole run.
    #[serde(default)]
    pub window: Option<Window>,
    /// Numbers of the replications that are recorded, from 0: `[0, 2]`, or `"all"`. Default: the
    /// first replication.
    #[serde(default)]
    pub replications: Option<Recorded>,
    /// Width of the bins for probes of rates (`throughput`, `goodput`). Default: 1 s.
    #[serde(default)]
    pub bin: Option<TimeSpan>,
}

impl Record {
    /// Width of the bins.
    pub fn bin_width(&self) -> TimeSpan {
        self.bin.unwrap_or(TimeSpan(1_000_000_000))
    }

    /// Whether samples of the replication with this number are stored.
    pub fn wants(&self, replication: u32) -> bool {
        match &self.replications {
            Some(Recorded::All) => true,
            Some(Recorded::These(wanted)) => wanted.contains(&replication),
            None => replication == 0,
        }
    }
}

/// Replications whose samples are stored.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Recorded {
    /// All replications: `"all"`.
    #[serde(serialize_with = "all")]
    #[schemars(with = "AllWord")]
    All,
    /// The replications with these numbers, from 0.
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
