//! A spec's transport as the transports' own configuration: their tables of settings, and what is wrong with a combination.

use std::sync::LazyLock;

use anabranch_scenario::Transport;
use anabranch_scenario::addresses::IpVersion;
use anabranch_scenario::checker::Checker;
use anabranch_scenario::transport::TransportKind;
use anabranch_sctp::tx::allocation::AllocationKind;
use anabranch_sctp::{Config as SctpConfig, Profile as SctpProfile};
use anabranch_settings::{Kind, settings};
use anabranch_tcp::{Config as TcpConfig, Profile as TcpProfile};

/// SCTP's common header.
const COMMON_HEADER: u64 = 12;
/// The header of a DATA chunk.
pub const DATA_HEADER: u64 = 16;
/// The most payload of a UDP datagram over IPv4: what is left of 65535 bytes by two headers.
const UDP_LARGEST: u64 = 65_535 - 20 - 8;

settings! {
    /// What the applications at both ends of an SCTP flow do, beside their workload.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Application {
        /// Messages may overtake one another.
        unordered: bool = false, Kind::Flag, "RFC 9260 §6.6";
        /// How fast the receiving application reads, bits per second of user data. Off: it is always ready.
        reading_rate: Option<u64> = None,
            Kind::Either(anabranch_settings::OFF, &Kind::Rate { least: 1, most: 1_000_000_000_000 }), "";
        /// Use every interface of both hosts, the first with the first and so on, rather than the first of each; `paths` of
        /// the flow can say more.
        multihomed: bool = false, Kind::Flag, "RFC 9260 §6.4";
    }
    beside {}
}

settings! {
    /// What a UDP source says of its datagrams.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Datagrams {
        /// Datagrams say that their sender uses ECN, so that a queue may mark them instead of dropping them. The source does
        /// not slow down for marks.
        ecn: bool = false, Kind::Flag, "RFC 3168 §5";
    }
    beside {}
}

/// The transports of this project.
pub static TRANSPORTS: LazyLock<[TransportKind; 3]> =
    LazyLock::new(|| [tcp_kind(), sctp_kind(), udp_kind()]);

fn tcp_kind() -> TransportKind {
    TransportKind {
        name: "tcp",
        about: "TCP (RFC 9293).",
        profiles: TcpProfile::NAMES,
        settings: TcpConfig::SETTINGS.to_vec(),
        switches: TcpProfile::SWITCHES,
        fallback: TcpConfig::fallback,
        messages: false,
        multihoming: false,
        window: true,
        largest_message: None,
    }
}

fn sctp_kind() -> TransportKind {
    TransportKind {
        name: "sctp",
        about: "SCTP (RFC 9260).",
        profiles: SctpProfile::NAMES,
        settings: [SctpConfig::SETTINGS, Application::SETTINGS].concat(),
        switches: SctpProfile::SWITCHES,
        fallback: |profile, name| {
            SctpConfig::fallback(profile, name).or_else(|| Application::default().show(name))
        },
        messages: true,
        multihoming: true,
        window: true,
        largest_message: None,
    }
}

fn udp_kind() -> TransportKind {
    TransportKind {
        name: "udp",
        about: "UDP, for cross traffic.",
        profiles: &[],
        settings: Datagrams::SETTINGS.to_vec(),
        switches: &[],
        fallback: |_, name| Datagrams::default().show(name),
        messages: true,
        multihoming: false,
        window: false,
        largest_message: Some(UDP_LARGEST),
    }
}

fn kind(name: &str) -> Option<&'static TransportKind> {
    TRANSPORTS.iter().find(|kind| kind.name == name)
}

/// Checks that the settings of a transport, each of which is in its range, go together.
pub fn check(c: &mut Checker<'_>, transport: &Transport, path: &str) {
    let at = |name: &str| format!("{path}.{}", transport.key_of(name));
    if transport.protocol == "tcp"
        && let Err(error) = tcp(transport, IpVersion::Ipv4).check()
    {
        c.problem(&at(error.setting()), error.to_string());
    }
    if transport.protocol != "sctp" {
        return;
    }
    let config = sctp(transport);
    if let Err(error) = config.check() {
        c.problem(
            &at(error.field),
            format!("found {}; allowed: {}", error.found, error.allowed),
        );
    }
    if let AllocationKind::Fixed(streams) | AllocationKind::Adaptive { streams, .. } =
        config.allocation
        && streams > config.outbound_streams
    {
        c.problem(
            &format!("{path}.allocation.streams"),
            format!(
                "found {streams}; `streams` negotiates only {}",
                config.outbound_streams
            ),
        );
    }
}

/// The configuration of a checked TCP transport over an IP version; the default one for any other.
pub fn tcp(transport: &Transport, ip: IpVersion) -> TcpConfig {
    let profile = transport.profile().and_then(TcpProfile::by_name);
    let mut config = TcpConfig::new(profile.unwrap_or_default());
    if ip == IpVersion::Ipv6 {
        // As large a packet, with 20 bytes of header more.
        config.mss -= 20;
    }
    if let Some(kind) = kind(&transport.protocol).filter(|kind| kind.name == "tcp") {
        for (setting, datum) in transport.values(kind) {
            // What a checked transport holds was read, and can be set.
            let _ = config.assign(setting.name, &datum);
        }
    }
    config
}

/// The configuration of a checked SCTP transport; the default one for any other.
pub fn sctp(transport: &Transport) -> SctpConfig {
    let profile = transport.profile().and_then(SctpProfile::by_name);
    let mut config = SctpConfig::new(profile.unwrap_or_default());
    if let Some(kind) = kind(&transport.protocol).filter(|kind| kind.name == "sctp") {
        for (setting, datum) in transport.values(kind) {
            // The keys of the application are not the configuration's.
            let _ = config.assign(setting.name, &datum);
        }
    }
    // Both ends have this configuration: what one asks for, the other must allow.
    config.inbound_streams = config.inbound_streams.max(config.outbound_streams);
    config
}

/// What the datagrams of a checked UDP transport say.
pub fn datagrams(transport: &Transport) -> Datagrams {
    let mut datagrams = Datagrams::default();
    if let Some(kind) = kind(&transport.protocol) {
        for (setting, datum) in transport.values(kind) {
            // What a checked transport holds was read, and can be set.
            let _ = datagrams.put(setting.name, &datum);
        }
    }
    datagrams
}

/// What the applications at both ends of a checked SCTP transport do.
pub fn application(transport: &Transport) -> Application {
    let mut application = Application::default();
    if let Some(kind) = kind(&transport.protocol) {
        for (setting, datum) in transport.values(kind) {
            // The protocol's own keys are not the application's.
            let _ = application.put(setting.name, &datum);
        }
    }
    application
}

/// The largest chunk of a configuration, header included: the unit of cwnd.
pub fn sctp_chunk(config: &SctpConfig, ip: IpVersion) -> u64 {
    let ip = match ip {
        IpVersion::Ipv4 => 20,
        IpVersion::Ipv6 => 40,
    };
    config.mtu as u64 - ip - COMMON_HEADER
}
