//! Constellations of satellites, and the ground stations that use them.

use std::collections::BTreeMap;
use std::fmt;

use anabranch_settings::{Kind, Setting};
use schemars::JsonSchema;
use serde::de::{self, MapAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::computed::Computed;
use crate::kind_choice::{KindChoice, KindFamily};
use crate::kind_families::{Loss, Queue};
use crate::quantity::{GroupSize, TimeSpan};
use crate::rates::RateOverTime;

/// Satellite shells: the satellites with their positions, and the links between them.
#[derive(Debug)]
pub enum ShellModel {}

/// A shell: `{ kind = "walker", shell = "starlink-1" }`, or the name of a preset alone.
pub type Shell = KindChoice<ShellModel>;

impl KindFamily for ShellModel {
    const NAME: &'static str = "Shell";
    const WHAT: &'static str = "a shell";
    const EXPECTED: &'static str = "the name of a shell in quotes, such as \"kuiper-1\", or a table with the key `kind`, such as { kind = \"walker\", shell = \"kuiper-1\", min_elevation = 30 }";

    fn from_text(text: &str) -> Result<Shell, String> {
        Ok(Shell::new("walker").with("shell", text))
    }

    fn short_forms() -> Vec<serde_json::Value> {
        vec![serde_json::json!({ "type": "string" })]
    }

    fn untagged(parameters: BTreeMap<String, Value>) -> Shell {
        let kind = match parameters.contains_key("elements") {
            true => "elements",
            false => "walker",
        };
        Shell::of(kind, parameters)
    }
}

/// Routing kinds: algorithms that compute routes over moving nodes.
#[derive(Debug)]
pub enum RoutingModel {}

/// Computation of routes over moving nodes: `{ kind = "least-delay", interval = "1 s" }`.
pub type MovingRouting = KindChoice<RoutingModel>;

const INTERVAL: &str = "interval";
const RELAYS: &str = "relays";

impl KindFamily for RoutingModel {
    const NAME: &'static str = "Routing";
    const WHAT: &'static str = "a routing";
    const EXPECTED: &'static str = "the name of a routing in quotes, or a table with the key `kind`, such as { kind = \"least-delay\", interval = \"1 s\" }";
    const SHARED: &'static [Setting] = &[
        Setting::new(
            INTERVAL,
            " Routes are computed for the positions at multiples of this interval, and stay unchanged in between.",
            Kind::Duration {
                least: 1_000_000,
                most: 86_400_000_000_000,
            },
        )
        .or("100 ms"),
        Setting::new(
            RELAYS,
            " Stations forward packets between satellites.",
            Kind::Flag,
        )
        .or("false"),
    ];
}

impl MovingRouting {
    /// Time between two route computations, nanoseconds.
    pub fn interval(&self) -> u64 {
        match self.shared(INTERVAL) {
            Some(anabranch_settings::Datum::Whole(interval)) => interval,
            _ => 100_000_000,
        }
    }

    /// Whether ground stations forward packets for other nodes.
    pub fn relays(&self) -> bool {
        self.shared(RELAYS) == Some(anabranch_settings::Datum::Flag(true))
    }
}

/// A constellation of satellites. Each satellite is a node: a member of the group with the name of
/// the constellation. The constellation has three groups of links: `NAME-isl` between satellites;
/// `NAME-up` from stations to satellites, with a member for each station; and `NAME-down` from
/// satellites to stations, with a member for each satellite. The forward direction of `NAME-up` and
/// `NAME-down` starts at the transmitter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Constellation {
    /// Name of the constellation, and of the group of its satellites.
    pub name: String,
    /// Satellite shells. Satellites are numbered in the order of the shells: `["starlink-1"]`, `[{
    /// kind = "walker", planes = 72, satellites = 22, altitude = 550, inclination = 53 }]`, `[{
    /// kind = "elements", file = "gp.tle" }]`.
    pub shells: Vec<Shell>,
    /// Time after the epoch of the orbits at which a run starts.
    #[serde(default = "at_once")]
    pub start: TimeSpan,
    /// Transmitters of the links between satellites, one for each direction. Not required if
    /// satellites have no links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isl: Option<LinkTransmitter>,
    /// Transmitter of each station, with one queue for the packets to all satellites.
    pub up: LinkTransmitter,
    /// Transmitter of each satellite to stations, with one queue for the packets to all stations.
    pub down: LinkTransmitter,
    /// Policy by which a station selects satellites.
    #[serde(default)]
    pub policy: Policy,
    /// Times at which stations change to another satellite, for policies that select one satellite:
    /// `{ times = ["12 s", "27 s", "42 s", "57 s"], repeat = "60 s" }`. Default: the policy
    /// determines the times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<Changes>,
    /// Number of interfaces of each station, 1 to 16, for flows with several paths. Each interface
    /// has a separate transmitter and address, and uses only some satellites: interface j uses the
    /// satellites whose number modulo the number of interfaces is j. If a host is connected to a
    /// station by several wires, packets of wire j use interface j. Default: 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub interfaces: GroupSize,
    /// Interruption of a station during the change to another satellite, for policies that select
    /// one satellite. Default: no interruption.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handover: Option<Handover>,
    /// Numbers of satellites and links, which are derived from the shells.
    #[serde(skip)]
    pub counted: Computed<Counted>,
}

fn one() -> GroupSize {
    GroupSize(1)
}

fn is_one(count: &GroupSize) -> bool {
    count.0 == 1
}

fn at_once() -> TimeSpan {
    TimeSpan(0)
}

/// Sizes of a constellation and names of its link groups. They are filled in after decoding, when
/// the satellites of the shells are counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Number of satellites.
    pub satellites: u32,
    /// Number of links between satellites.
    pub isls: u32,
    /// Number of station interfaces.
    pub stations: u32,
    /// Names of the link groups, indexed by class.
    pub names: [String; 3],
}

/// Class of the links of a constellation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Links between satellites.
    Isl,
    /// Links from stations to satellites.
    Up,
    /// Links from satellites to stations.
    Down,
}

impl Class {
    /// All classes, in the order of the links of a world.
    pub const ALL: [Class; 3] = [Class::Isl, Class::Up, Class::Down];

    /// Name of the class: `isl`, `up`, `down`.
    pub const fn name(self) -> &'static str {
        match self {
            Class::Isl => "isl",
            Class::Up => "up",
            Class::Down => "down",
        }
    }
}

impl Constellation {
    /// Transmitter of the links of a class, if the class has links.
    pub fn transmitter(&self, class: Class) -> Option<&LinkTransmitter> {
        match class {
            Class::Isl => self.isl.as_ref(),
            Class::Up => Some(&self.up),
            Class::Down => Some(&self.down),
        }
    }

    /// Number of links of a class.
    pub fn members(&self, class: Class) -> u32 {
        match class {
            Class::Isl => self.counted.isls,
            Class::Up => self.counted.stations,
            Class::Down => self.counted.satellites,
        }
    }

    /// Name of the group of links of a class.
    pub fn link_name(&self, class: Class) -> &str {
        &self.counted.names[class as usize]
    }
}

/// Transmitter: one direction of a link whose delay follows its length.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkTransmitter {
    /// Bit rate, like `rate` of a link.
    pub rate: RateOverTime,
    /// Links up and down only: shares of the rate by elevation, as minimum elevation in degrees and
    /// share, ascending: `[[25, 0.4], [50, 0.7], [70, 1]]`. Below the first elevation, the share of
    /// the first elevation applies. The rate must be constant and the queue drop-tail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rate_by_elevation: Vec<[f64; 2]>,
    /// Links up only, with a policy that selects one satellite: how the stations that a satellite
    /// serves share its rate. `"equal"`: the rate is that of the satellite, and all stations that
    /// it serves have equal shares, whether or not they send. The rate must be constant and the
    /// queue drop-tail. On links down, the stations always share the transmitter of the satellite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_by_load: Option<LoadShare>,
    /// Queue, like `queue` of a link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// Loss model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
    /// Times at which this direction is down, like `down` of a link. Routes avoid the direction at
    /// these times.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub down: Vec<[TimeSpan; 2]>,
}

/// Division of a satellite's rate among the stations that it serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LoadShare {
    /// Equal shares for all stations that the satellite serves, whether or not they send. The
    /// shares change when a station changes to another satellite.
    Equal,
}

/// Policy by which a station selects satellites.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// All satellites in reach may be used, as the routes require.
    #[default]
    Any,
    /// Only the nearest satellite is used, even if the remaining path is longer.
    Nearest,
    /// One satellite until it is out of reach, and then the satellite that will be in reach for the
    /// longest time.
    Longest,
}

/// Times at which a station changes to another satellite.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Changes {
    /// Times of changes, ascending. At each time the policy selects a satellite, which the station
    /// uses until the next time. While this satellite is out of reach, there is no path. The first
    /// satellite is selected at the start of the run. A change takes effect at the next computation
    /// of routes.
    pub times: Vec<TimeSpan>,
    /// Period after which the times repeat; must be greater than the last time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<TimeSpan>,
}

/// Interruption of a station that changes to another satellite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Handover {
    /// Duration of the interruption, during which the station neither sends nor receives.
    pub gap: TimeSpan,
    /// Treatment of packets during a handover.
    #[serde(default)]
    pub packets: Meanwhile,
}

/// Treatment of packets during a handover.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Meanwhile {
    /// Packets wait until the handover ends.
    #[default]
    Hold,
    /// Packets are dropped, with the reason `link-down`.
    Drop,
}

/// Ground stations, such as users and gateways. Each station is a node: a member of the group with
/// the name of the ground.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ground {
    /// Name of the ground, and of the group of its stations.
    pub name: String,
    /// Stations: `["35.69,139.69", { name = "Delhi", at = "28.67,77.22" }]`, in degrees north and
    /// east. They may also be in a file: `file = "cities.csv"` with the columns `name`, `latitude`,
    /// `longitude`. A flow can refer to a station by its name: `city[Delhi]`.
    pub stations: Vec<Station>,
    /// Names of the constellations that the stations use. Default: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constellations: Vec<String>,
}

impl Ground {
    /// Whether the stations of this ground use a constellation.
    pub fn uses(&self, constellation: &str) -> bool {
        let mut named = self.constellations.iter();
        self.constellations.is_empty() || named.any(|name| name == constellation)
    }
}

/// A ground station.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Station {
    /// Name by which flows can refer to the station.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Place of the station in degrees north and east: `"35.69,139.69"`.
    pub at: String,
    /// Population, 0 to 1e12, for pairs that are drawn by population.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub population: Option<f64>,
}

impl<'de> Deserialize<'de> for Station {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Which;
        impl<'de> Visitor<'de> for Which {
            type Value = Station;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a place in quotes, degrees north and east, such as \"35.69,139.69\", or { name = \"Tokyo\", at = \"35.69,139.69\" }")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Station, E> {
                Ok(Station {
                    name: None,
                    at: text.to_owned(),
                    population: None,
                })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Station, A::Error> {
                #[derive(Deserialize)]
                #[serde(deny_unknown_fields)]
                struct Named {
                    name: Option<String>,
                    at: String,
                    population: Option<f64>,
                }
                let named = Named::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Station {
                    name: named.name,
                    at: named.at,
                    population: named.population,
                })
            }
        }
        deserializer.deserialize_any(Which)
    }
}

/// Pairs of members of two groups between which a flow runs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Pairs {
    /// All pairs of different members: `"all"`.
    #[serde(serialize_with = "all")]
    #[schemars(with = "String")]
    All,
    /// The listed pairs, by numbers of members: `[[0, 5], [5, 0]]`.
    List(Vec<[u32; 2]>),
    /// Pairs that are drawn at random.
    Random(RandomPairs),
}

/// Pairs that are drawn at random: `{ random = 50, seed = 1, both = true }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RandomPairs {
    /// Number of pairs. If `from` and `to` have the same members, each member is in at most one
    /// pair.
    pub random: u32,
    /// Seed of the drawing. The seed of a run does not affect the pairs.
    #[serde(default)]
    pub seed: u32,
    /// Use each pair in both directions, which doubles the number of flows.
    #[serde(default)]
    pub both: bool,
    /// Weights of the members. Default: all are equal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<Weights>,
}

/// Weights of the members of groups, for drawing pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Weights {
    /// Weights by the `population` of stations. If `from` and `to` have the same members, members
    /// are drawn in proportion to their population, without repetition. Otherwise pairs are drawn
    /// in proportion to the product of the populations.
    Population,
}

fn all<S: serde::Serializer>(serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str("all")
}

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Which;
        impl<'de> Visitor<'de> for Which {
            type Value = Pairs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of pairs such as [[0, 5], [5, 0]], \"all\", or { random = 50 }")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Pairs, E> {
                match text {
                    "all" => Ok(Pairs::All),
                    _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
                }
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<Pairs, A::Error> {
                let mut list = Vec::new();
                while let Some(pair) = seq.next_element()? {
                    list.push(pair);
                }
                Ok(Pairs::List(list))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Pairs, A::Error> {
                RandomPairs::deserialize(MapAccessDeserializer::new(map)).map(Pairs::Random)
            }
        }
        deserializer.deserialize_any(Which)
    }
}
