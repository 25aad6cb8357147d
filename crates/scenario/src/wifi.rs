//! Wireless cells of a spec: an access point, its stations, and the parameters of their 802.11
//! medium.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::constellation::{Class, Constellation};
use crate::quantity::{Amount, Frequency, Length, Power, Rate, Size, Span};
use crate::world::Link;

/// An 802.11 cell. Each station is joined to the access point by a wireless link; all share one medium. The links bear the
/// cell's name, with several stations as members in the order of the file; forward is from the access point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Wifi {
    /// Its name.
    pub name: String,
    /// The named set of parameters that it starts from.
    #[serde(default)]
    pub set: Set,
    /// What differs from the set.
    #[serde(default)]
    pub parameters: Overrides,
    /// The station that every link ends at; what else it is joined to, it forwards to and from.
    pub access_point: Station,
    /// The other stations, at least one.
    #[serde(rename = "station")]
    pub stations: Vec<Station>,
}

/// A node as a station.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Station {
    /// The node; one member of a group: `laptop[0]`.
    pub node: String,
    /// Where it stands: east and north of a common corner.
    pub at: [Length; 2],
}

/// A named set of parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Set {
    /// IEEE 802.11b with long preambles and the defaults of the standard.
    #[default]
    #[serde(rename = "802.11b")]
    Ieee80211b,
    /// The listing in Rafiq's thesis (2007), completed by the defaults of ns-2.35. It departs from 802.11b in what
    /// `anabranch_sim::wifi::Parameters::rafiq2007` lists: RTS before every frame, among others.
    #[serde(rename = "rafiq2007")]
    Rafiq2007,
}

/// What a frame waits for that finds an idle medium and no backoff in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Idle {
    /// DIFS of idleness, which may be over already.
    Immediate,
    /// DIFS from its own arrival, and a backoff.
    Backoff,
}

/// What a station does after a frame that it could not decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Error {
    /// It waits EIFS in place of DIFS.
    EifsInsteadOfDifs,
    /// It waits EIFS, then DIFS.
    EifsThenDifs,
}

/// What a backoff is drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Backoff {
    /// 0 to CW.
    ThroughWindow,
    /// 0 to CW - 1.
    BelowWindow,
}

/// How long a sender waits for a CTS or an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Timeout {
    /// SIFS, a slot, and the response's preamble and header.
    Header,
    /// SIFS, the whole response, and `timeout_slack`.
    WholeFrame,
}

/// The law by which power falls with distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Law {
    /// With the square.
    FreeSpace,
    /// With the square up to the crossover distance, with the fourth power beyond.
    TwoRayGround,
}

macro_rules! overrides {
    ($($(#[doc = $doc:literal])+ $name:ident: $kind:ty;)+) => {
        /// Parameters instead of those of the set.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct Overrides {
            $(
                $(#[doc = $doc])+
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub $name: Option<$kind>,
            )+
        }
    };
}

overrides! {
    /// A slot of the backoff.
    slot: Span;
    /// The gap before a response.
    sifs: Span;
    /// How long a carrier must last before it is noticed.
    cca_time: Span;
    /// First contention window, slots.
    cw_min: u32;
    /// Largest contention window, slots.
    cw_max: u32;
    /// What a backoff is drawn from.
    backoff_range: Backoff;
    /// What a frame waits for that finds the medium idle.
    idle_access: Idle;
    /// What a station does after an undecodable frame.
    after_error: Error;
    /// How long a sender waits for a response.
    response_timeout: Timeout;
    /// With `response_timeout = "whole-frame"`: how much longer than the response lasts.
    timeout_slack: Span;
    /// Bits of the PLCP preamble.
    preamble_bits: u32;
    /// Bits of the PLCP header.
    plcp_header_bits: u32;
    /// Rate of preamble and header.
    plcp_rate: Rate;
    /// Rate of data frames.
    data_rate: Rate;
    /// Rate of RTS, CTS and ACK.
    basic_rate: Rate;
    /// Air times are whole multiples of this.
    air_time_unit: Span;
    /// What a data frame adds to its packet.
    data_overhead: Size;
    /// Size of an RTS.
    rts_size: Size;
    /// Size of a CTS.
    cts_size: Size;
    /// Size of an ACK.
    ack_size: Size;
    /// Longer data frames are announced by RTS; `"0 B"` announces all.
    rts_threshold: Size;
    /// Attempts for an RTS or an unannounced data frame.
    short_retry_limit: u32;
    /// Attempts for an announced data frame.
    long_retry_limit: u32;
    /// Longest packet taken.
    longest_packet: Size;
    /// What a station's interface holds, the packet on its way included: `"50 packets"`.
    queue: Amount;
    /// What the layer above takes with each packet, on either side.
    link_layer_delay: Span;
    /// What a station's routing adds to every packet of its own, all the way.
    routing_header: Size;
    /// Power fed to the antenna: `"100 mW"`.
    transmit_power: Power;
    /// The carrier: `"2.437 GHz"`.
    frequency: Frequency;
    /// A weaker frame cannot be decoded.
    receive_threshold: Power;
    /// A weaker signal is not noticed.
    carrier_sense_threshold: Power;
    /// A frame survives others that are together so many times weaker.
    capture_ratio: f64;
    /// Gain of the transmitting antenna.
    transmit_gain: f64;
    /// Gain of the receiving antenna.
    receive_gain: f64;
    /// Height of the antennas.
    antenna_height: Length;
    /// Losses of the system, as a ratio of at least 1.
    system_loss: f64;
    /// How power falls with distance.
    propagation: Law;
}

impl Wifi {
    /// The node of the access point, followed by those of the stations.
    pub fn nodes(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.access_point)
            .chain(&self.stations)
            .map(|station| station.node.as_str())
    }
}

/// A link of a world: a wire, a cell, or the links of a constellation.
#[derive(Clone, Copy, Debug)]
pub enum Carrier<'a> {
    /// A wire or a group of wires.
    Wire(&'a Link),
    /// A cell.
    Air(&'a Wifi),
    /// The links of a class of a constellation.
    Beam(&'a Constellation, Class),
}

impl<'a> Carrier<'a> {
    /// Its name.
    pub fn name(self) -> &'a str {
        match self {
            Carrier::Wire(link) => &link.name,
            Carrier::Air(wifi) => &wifi.name,
            Carrier::Beam(constellation, class) => constellation.link_name(class),
        }
    }
}
