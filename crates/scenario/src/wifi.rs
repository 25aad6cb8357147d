//! Wireless cells of a spec: an access point, its stations, and the parameters of their 802.11
//! medium.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::constellation::{Class, Constellation};
use crate::quantity::{Amount, Frequency, Length, Power, Rate, Size, Span};
use crate::world::Link;

/// An 802.11 cell. Each station has a wireless link to the access point, and all share one medium.
/// The links have the name of the cell; if there are several stations, they are its members in the
/// order of the file. Forward is from the access point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Wifi {
    /// Name.
    pub name: String,
    /// Named set of parameters to start from.
    #[serde(default)]
    pub set: ParameterSet,
    /// Parameters that differ from the set.
    #[serde(default)]
    pub parameters: Overrides,
    /// The access point, at which every link of the cell ends. It forwards packets between the cell
    /// and its other links.
    pub access_point: Station,
    /// The stations besides the access point; at least one.
    #[serde(rename = "station")]
    pub stations: Vec<Station>,
}

/// A node as a station.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Station {
    /// The node, or a member of a group: `laptop[0]`.
    pub node: String,
    /// Position: distance to the east and to the north of a common origin.
    pub at: [Length; 2],
}

/// A named set of parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ParameterSet {
    /// IEEE 802.11b with long preambles and the defaults of the standard.
    #[default]
    #[serde(rename = "802.11b")]
    Ieee80211b,
    /// The listing in the thesis of Rafiq (2007), completed by the defaults of ns-2.35. This set
    /// differs from 802.11b as listed in `anabranch_sim::wifi::Parameters::rafiq2007`: for example,
    /// an RTS precedes every frame.
    #[serde(rename = "rafiq2007")]
    Rafiq2007,
}

/// Medium access of a frame that finds an idle medium and no backoff in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IdleAccessRule {
    /// DIFS of an idle medium, which may be over already.
    Immediate,
    /// DIFS from the arrival of the frame, and a backoff.
    Backoff,
}

/// Behaviour of a station after a frame that it could not decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AfterErrorRule {
    /// The station waits EIFS in place of DIFS.
    EifsInsteadOfDifs,
    /// The station waits EIFS, then DIFS.
    EifsThenDifs,
}

/// Range of backoffs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Backoff {
    /// 0 to CW.
    ThroughWindow,
    /// 0 to CW - 1.
    BelowWindow,
}

/// Response timeout of a sender for a CTS or an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ResponseTimeoutRule {
    /// SIFS, a slot, and the response's preamble and header.
    Header,
    /// SIFS, the whole response, and `timeout_slack`.
    WholeFrame,
}

/// Decrease of power with distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PropagationLaw {
    /// With the square of the distance.
    FreeSpace,
    /// With the square up to the crossover distance, and with the fourth power beyond.
    TwoRayGround,
}

macro_rules! overrides {
    ($($(#[doc = $doc:literal])+ $name:ident: $kind:ty;)+) => {
        /// Parameters that replace those of the set.
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
    /// Duration of a slot of the backoff.
    slot: Span;
    /// Time before a response (SIFS).
    sifs: Span;
    /// Time after which a carrier is detected.
    cca_time: Span;
    /// Minimum contention window, in slots.
    cw_min: u32;
    /// Maximum contention window, in slots.
    cw_max: u32;
    /// Range of backoffs.
    backoff_range: Backoff;
    /// Medium access of a frame that finds an idle medium.
    idle_access: IdleAccessRule;
    /// Behaviour of a station after a frame that it could not decode.
    after_error: AfterErrorRule;
    /// Response timeout of a sender.
    response_timeout: ResponseTimeoutRule;
    /// With `response_timeout = "whole-frame"`: time by which the timeout exceeds the duration of
    /// the response.
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
    /// Bytes that a data frame has in addition to its packet.
    data_overhead: Size;
    /// Size of an RTS.
    rts_size: Size;
    /// Size of a CTS.
    cts_size: Size;
    /// Size of an ACK.
    ack_size: Size;
    /// Data frames above this size are preceded by an RTS; with `"0 B"` all data frames are.
    rts_threshold: Size;
    /// Maximum attempts for an RTS, or for a data frame without one.
    short_retry_limit: u32;
    /// Maximum attempts for a data frame with an RTS.
    long_retry_limit: u32;
    /// Maximum packet size.
    longest_packet: Size;
    /// Limit of the interface queue of a station, which includes the packet in transmission: `"50
    /// packets"`.
    queue: Amount;
    /// Processing time of the layer above for each packet, at each end.
    link_layer_delay: Span;
    /// Bytes that the routing of a station adds to each packet that it originates, on the whole
    /// path.
    routing_header: Size;
    /// Transmit power: `"100 mW"`.
    transmit_power: Power;
    /// Carrier frequency: `"2.437 GHz"`.
    frequency: Frequency;
    /// Minimum power at which a frame can be decoded.
    receive_threshold: Power;
    /// Minimum power at which a signal is detected.
    carrier_sense_threshold: Power;
    /// Minimum ratio of the power of a frame to the sum of all others at which it can be decoded.
    capture_ratio: f64;
    /// Gain of the transmitting antenna.
    transmit_gain: f64;
    /// Gain of the receiving antenna.
    receive_gain: f64;
    /// Height of the antennas.
    antenna_height: Length;
    /// System loss, as a ratio of at least 1.
    system_loss: f64;
    /// Decrease of power with distance.
    propagation: PropagationLaw;
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
pub enum LinkMedium<'a> {
    /// A wire or a group of wires.
    Wire(&'a Link),
    /// A cell.
    Air(&'a Wifi),
    /// The links of a class of a constellation.
    Beam(&'a Constellation, Class),
}

impl<'a> LinkMedium<'a> {
    /// Name.
    pub fn name(self) -> &'a str {
        match self {
            LinkMedium::Wire(link) => &link.name,
            LinkMedium::Air(wifi) => &wifi.name,
            LinkMedium::Beam(constellation, class) => constellation.link_name(class),
        }
    }
}
