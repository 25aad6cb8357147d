//! Wireless cells of a spec: an access point, its stations, and the parameters of their 802.11
//! medium.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::constellation::{Class, Constellation};
use crate::quantity::{Capacity, Frequency, Length, Power, Rate, Size, TimeSpan};
use crate::world::Link;

/// An 802.11 cell. Each station has a wireless link to the access point, and all these links share
/// one medium. The links form a group with the name of the cell, in the order of the stations; a
/// cell with one station has a single link. The forward direction starts at the access point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Wifi {
    /// Name of the cell, and of its links.
    pub name: String,
    /// Named set of parameters from which the cell starts.
    #[serde(default)]
    pub set: ParameterSet,
    /// Parameters that differ from the set.
    #[serde(default)]
    pub parameters: Overrides,
    /// Access point, at which every link of the cell ends. The node forwards packets between the
    /// cell and the other links of the node.
    pub access_point: Station,
    /// Stations in addition to the access point; at least one.
    #[serde(rename = "station")]
    pub stations: Vec<Station>,
}

/// A node that is a station of the cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Station {
    /// Name of the node, or of a member of a group: `laptop[0]`.
    pub node: String,
    /// Position: distances to the east and to the north of a common origin.
    pub at: [Length; 2],
}

/// A named set of parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ParameterSet {
    /// IEEE 802.11b with long preambles, and the defaults of the standard.
    #[default]
    #[serde(rename = "802.11b")]
    Ieee80211b,
    /// The listing in Rafiq's thesis (2007), completed with the defaults of ns-2.35. It differs
    /// from 802.11b as documented at `anabranch_sim::wifi::WifiParameters::rafiq2007`; for example,
    /// every data frame is preceded by an RTS.
    #[serde(rename = "rafiq2007")]
    Rafiq2007,
}

/// Access to the medium for a frame that arrives while the medium is idle and no backoff is in
/// progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IdleAccessRule {
    /// The frame is sent as soon as the medium has been idle for DIFS, which may already be the
    /// case when it arrives.
    Immediate,
    /// The frame is sent DIFS after its arrival, plus a backoff that is drawn for it.
    Backoff,
}

/// Behaviour of a station after a frame that it could not decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AfterErrorRule {
    /// The station waits for EIFS in place of DIFS.
    EifsInsteadOfDifs,
    /// The station waits for EIFS, and then for DIFS.
    EifsThenDifs,
}

/// Range from which a backoff is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Backoff {
    /// The backoff is drawn from 0 to CW, both included.
    ThroughWindow,
    /// The backoff is drawn from 0 to CW - 1, both included.
    BelowWindow,
}

/// Time for which a sender waits for a CTS or an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ResponseTimeoutRule {
    /// The sender waits for SIFS, a slot, and the preamble and header of the response.
    Header,
    /// The sender waits for SIFS, the whole response, and `timeout_slack`.
    WholeFrame,
}

/// Dependence of received power on distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PropagationLaw {
    /// Power decreases with the square of the distance.
    FreeSpace,
    /// Power decreases with the square of the distance up to the crossover distance, and with the
    /// fourth power beyond it.
    TwoRayGround,
}

macro_rules! overrides {
    ($($(#[doc = $doc:literal])+ $name:ident: $kind:ty;)+) => {
        /// Parameters of the cell that differ from those of its parameter set.
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
    slot: TimeSpan;
    /// Gap before a response (SIFS).
    sifs: TimeSpan;
    /// Time that a carrier must last before a station detects it.
    cca_time: TimeSpan;
    /// Minimum contention window, in slots.
    cw_min: u32;
    /// Maximum contention window, in slots.
    cw_max: u32;
    /// Range from which a backoff is drawn.
    backoff_range: Backoff;
    /// Access to the medium for a frame that arrives while the medium is idle.
    idle_access: IdleAccessRule;
    /// Behaviour of a station after a frame that it could not decode.
    after_error: AfterErrorRule;
    /// Time for which a sender waits for a response.
    response_timeout: ResponseTimeoutRule;
    /// With `response_timeout = "whole-frame"`: time by which the timeout exceeds the duration of
    /// the response.
    timeout_slack: TimeSpan;
    /// Length of the PLCP preamble, bits.
    preamble_bits: u32;
    /// Length of the PLCP header, bits.
    plcp_header_bits: u32;
    /// Rate of the PLCP preamble and header.
    plcp_rate: Rate;
    /// Rate of data frames.
    data_rate: Rate;
    /// Rate of RTS, CTS and ACK.
    basic_rate: Rate;
    /// The air time of a frame is rounded up to a multiple of this time.
    air_time_unit: TimeSpan;
    /// Bytes that a data frame adds to its packet.
    data_overhead: Size;
    /// Size of an RTS.
    rts_size: Size;
    /// Size of a CTS.
    cts_size: Size;
    /// Size of an ACK.
    ack_size: Size;
    /// Data frames above this size are preceded by an RTS; with `"0 B"` all data frames are.
    rts_threshold: Size;
    /// Maximum number of attempts for an RTS, or for a data frame without RTS.
    short_retry_limit: u32;
    /// Maximum number of attempts for a data frame with RTS.
    long_retry_limit: u32;
    /// Maximum packet size.
    longest_packet: Size;
    /// Limit of the interface queue of a station, including the packet in transmission: `"50
    /// packets"`.
    queue: Capacity;
    /// Processing time of the layer above for each packet, at the sender and at the receiver.
    link_layer_delay: TimeSpan;
    /// Bytes that the routing of a station adds to each packet that it originates, on all links of
    /// the path.
    routing_header: Size;
    /// Transmit power: `"100 mW"`.
    transmit_power: Power;
    /// Carrier frequency: `"2.437 GHz"`.
    frequency: Frequency;
    /// Minimum power at which a frame can be decoded.
    receive_threshold: Power;
    /// Minimum power at which a signal is detected.
    carrier_sense_threshold: Power;
    /// Minimum ratio of the power of a frame to the sum of all other signals at which the frame can
    /// be decoded.
    capture_ratio: f64;
    /// Gain of the transmitting antenna.
    transmit_gain: f64;
    /// Gain of the receiving antenna.
    receive_gain: f64;
    /// Height of the antennas.
    antenna_height: Length;
    /// System loss, as a ratio of at least 1.
    system_loss: f64;
    /// Dependence of received power on distance.
    propagation: PropagationLaw;
}

impl Wifi {
    /// Name of the access point, followed by those of the stations.
    pub fn nodes(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.access_point)
            .chain(&self.stations)
            .map(|station| station.node.as_str())
    }
}

/// A link of a world: a wire, a cell, or a class of links of a constellation.
#[derive(Clone, Copy, Debug)]
pub enum LinkMedium<'a> {
    /// A wire, or a group of wires.
    Wire(&'a Link),
    /// The links of a wireless cell.
    Air(&'a Wifi),
    /// The links of one class of a constellation.
    Beam(&'a Constellation, Class),
}

impl<'a> LinkMedium<'a> {
    /// Name of the link or of its group.
    pub fn name(self) -> &'a str {
        match self {
            LinkMedium::Wire(link) => &link.name,
            LinkMedium::Air(wifi) => &wifi.name,
            LinkMedium::Beam(constellation, class) => constellation.link_name(class),
        }
    }
}
