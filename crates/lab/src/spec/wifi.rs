//! Wireless cells of a spec: an access point, its stations, and the numbers of their 802.11 medium.

use anabranch_sim::wifi::{
    AfterError, BackoffRange, IdleAccess, ParameterError, Parameters, Propagation, ResponseTimeout,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::quantity::{Amount, Frequency, Length, Power, Rate, Size, Span};
use super::validate::{Checker, check_node};
use super::{Link, Spec};

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

/// Puts values of the spec in the place of a set's.
macro_rules! put {
    ($from:ident, $into:expr; $($name:ident as $field:ident $(: $convert:expr)?),+ $(,)?) => {
        $(if let Some(value) = $from.$name {
            $into.$field = put!(@ value $(, $convert)?);
        })+
    };
    (@ $value:ident) => { $value };
    (@ $value:ident, $convert:expr) => { $convert($value) };
}

impl Wifi {
    /// The medium's parameters: those of the set, but for what the cell says.
    pub fn parameters(&self) -> Parameters {
        let mut all = match self.set {
            Set::Ieee80211b => Parameters::ieee80211b(),
            Set::Rafiq2007 => Parameters::rafiq2007(),
        };
        let own = &self.parameters;
        let span = |span: Span| span.0;
        let rate = |rate: Rate| rate.0;
        // What is larger than any frame is as good as the largest.
        let size = |size: Size| u32::try_from(size.0).unwrap_or(u32::MAX);
        let watts = |power: Power| power.0;
        put!(own, all;
            slot as slot: span, sifs as sifs: span, cca_time as cca_time: span,
            cw_min as cw_min, cw_max as cw_max,
            preamble_bits as preamble_bits, plcp_header_bits as plcp_header_bits,
            plcp_rate as plcp_rate: rate, data_rate as data_rate: rate, basic_rate as basic_rate: rate,
            air_time_unit as air_time_unit: span,
            data_overhead as data_overhead: size, rts_size as rts_bytes: size,
            cts_size as cts_bytes: size, ack_size as ack_bytes: size, rts_threshold as rts_threshold: size,
            short_retry_limit as short_retry_limit, long_retry_limit as long_retry_limit,
            longest_packet as longest_packet: size, link_layer_delay as link_layer_delay: span,
            routing_header as routing_header: size,
        );
        put!(own, all.radio;
            transmit_power as transmit_power: watts,
            frequency as frequency: |frequency: Frequency| frequency.0,
            receive_threshold as receive_threshold: watts,
            carrier_sense_threshold as carrier_sense_threshold: watts,
            capture_ratio as capture_ratio, transmit_gain as transmit_gain, receive_gain as receive_gain,
            antenna_height as antenna_height: |height: Length| height.0,
            system_loss as system_loss,
        );
        if let Some(Amount::Packets(packets)) = own.queue {
            all.queue_limit = packets as usize;
        }
        self.choices(&mut all);
        all
    }

    fn choices(&self, all: &mut Parameters) {
        let own = &self.parameters;
        if let Some(range) = own.backoff_range {
            all.backoff_range = match range {
                Backoff::ThroughWindow => BackoffRange::ThroughWindow,
                Backoff::BelowWindow => BackoffRange::BelowWindow,
            };
        }
        if let Some(idle) = own.idle_access {
            all.idle_access = match idle {
                Idle::Immediate => IdleAccess::Immediate,
                Idle::Backoff => IdleAccess::Backoff,
            };
        }
        if let Some(error) = own.after_error {
            all.after_error = match error {
                Error::EifsInsteadOfDifs => AfterError::EifsInsteadOfDifs,
                Error::EifsThenDifs => AfterError::EifsThenDifs,
            };
        }
        if let Some(law) = own.propagation {
            all.radio.propagation = match law {
                Law::FreeSpace => Propagation::FreeSpace,
                Law::TwoRayGround => Propagation::TwoRayGround,
            };
        }
        all.response_timeout = match (own.response_timeout, own.timeout_slack) {
            (Some(Timeout::Header), _) => ResponseTimeout::Header,
            (Some(Timeout::WholeFrame), slack) => {
                ResponseTimeout::WholeFrame(slack.map_or(0, |slack| slack.0))
            }
            (None, Some(slack)) if all.response_timeout != ResponseTimeout::Header => {
                ResponseTimeout::WholeFrame(slack.0)
            }
            (None, _) => all.response_timeout,
        };
    }

    /// The access point's node and the others'.
    pub fn nodes(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.access_point)
            .chain(&self.stations)
            .map(|station| station.node.as_str())
    }
}

/// A link of a world: a wire, or what joins the stations of a cell to their access point.
#[derive(Clone, Copy, Debug)]
pub enum Carrier<'a> {
    /// A wire or a group of them.
    Wire(&'a Link),
    /// A cell.
    Air(&'a Wifi),
}

impl<'a> Carrier<'a> {
    /// Its name.
    pub fn name(self) -> &'a str {
        match self {
            Carrier::Wire(link) => &link.name,
            Carrier::Air(wifi) => &wifi.name,
        }
    }

    /// Bits per second in each direction; of a cell, those of its data frames.
    pub fn rate(self) -> u64 {
        match self {
            Carrier::Wire(link) => link.rate.0,
            Carrier::Air(wifi) => wifi.parameters().data_rate,
        }
    }
}

impl Spec {
    /// All links of its world: the wires, then the cells.
    pub fn carriers(&self) -> impl Iterator<Item = Carrier<'_>> {
        let wires = self.links.iter().map(Carrier::Wire);
        wires.chain(self.cells.iter().map(Carrier::Air))
    }
}

/// Checks the cells of a spec.
pub fn check(c: &mut Checker<'_>, spec: &Spec) {
    for (index, wifi) in spec.cells.iter().enumerate() {
        let path = format!("wifi.{index}");
        if spec.links.iter().any(|link| link.name == wifi.name) {
            let message = format!("found {:?}, which is the name of a link too", wifi.name);
            c.problem(&format!("{path}.name"), message);
        }
        check_station(c, spec, &wifi.access_point, &format!("{path}.access_point"));
        for (number, station) in wifi.stations.iter().enumerate() {
            let path = format!("{path}.station.{number}");
            check_station(c, spec, station, &path);
            if wifi
                .nodes()
                .take(number + 1)
                .any(|other| other == station.node)
            {
                let message = format!("found {:?} a second time in this cell", station.node);
                c.problem(&format!("{path}.node"), message);
            }
        }
        if wifi.stations.is_empty() {
            c.problem(
                &path,
                "a cell has at least one station beside its access point",
            );
        }
        check_parameters(c, wifi, &path);
    }
}

fn check_station(c: &mut Checker<'_>, spec: &Spec, station: &Station, path: &str) {
    let path = format!("{path}.node");
    if check_node(c, spec, &station.node, &path).is_some_and(|count| count > 1) {
        let message = format!(
            "found {:?}, which is a group; a station is one of its members, such as \"{}[0]\"",
            station.node, station.node
        );
        c.problem(&path, message);
    }
}

fn check_parameters(c: &mut Checker<'_>, wifi: &Wifi, path: &str) {
    let own = &wifi.parameters;
    let path = format!("{path}.parameters");
    if let Some(queue) = own
        .queue
        .filter(|queue| !matches!(queue, Amount::Packets(_)))
    {
        let message = format!("found \"{queue}\"; an interface's queue is counted in packets");
        c.problem(&format!("{path}.queue"), message);
    }
    let whole_frame = matches!(
        wifi.parameters().response_timeout,
        ResponseTimeout::WholeFrame(_)
    );
    if own.timeout_slack.is_some() && !whole_frame {
        c.problem(
            &format!("{path}.timeout_slack"),
            "found a slack, which goes with `response_timeout = \"whole-frame\"` only",
        );
    }
    match wifi.parameters().validate() {
        Ok(()) => {}
        Err(ParameterError::Positive(name)) => {
            let key = match name {
                "queue_limit" => "queue",
                name => name,
            };
            let message = format!("found 0 or no number; {key} must be above 0");
            c.problem(&format!("{path}.{key}"), message);
        }
        Err(error) => {
            let message =
                format!("{error}, which it does not with these values and those of the set");
            c.problem(&path, message);
        }
    }
}
