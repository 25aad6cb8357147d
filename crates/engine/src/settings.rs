//! A spec's transport as the transports' own configuration, and what is wrong with it.

use anabranch_congestion::sctp_algorithms;
use anabranch_scenario::Protocol;
use anabranch_scenario::addresses::IpVersion;
use anabranch_scenario::checker::Checker;
use anabranch_scenario::flow::Switches;
use anabranch_scenario::quantity::Amount;
use anabranch_sctp::profile::Amount as SctpAmount;
use anabranch_sctp::{Config as SctpConfig, Profile as SctpProfile};
use anabranch_tcp::{Config as TcpConfig, Profile as TcpProfile};

mod streams;

/// SCTP's common header.
const COMMON_HEADER: u64 = 12;
/// The header of a DATA chunk.
pub const DATA_HEADER: u64 = 16;

/// Notes what is wrong with a value: key under the transport, message, what was found, what is allowed.
type Complain<'a> = dyn FnMut(&str, String, &str, &[&str]) + 'a;

/// Checks a transport's profile, switches and values.
pub fn check(checker: &mut Checker<'_>, transport: &Protocol, path: &str) {
    let mut complain = |key: &str, message: String, found: &str, allowed: &[&str]| {
        checker.not_among(
            &format!("{path}.{key}"),
            &message,
            found,
            allowed.iter().copied(),
        );
    };
    match transport {
        Protocol::Tcp { .. } => drop(tcp_checked(transport, IpVersion::Ipv4, &mut complain)),
        Protocol::Sctp { .. } => drop(sctp_checked(transport, IpVersion::Ipv4, &mut complain)),
        Protocol::Udp {} => {}
    }
}

/// The configuration of a checked TCP transport over an IP version; the default one for any other.
pub fn tcp(transport: &Protocol, ip: IpVersion) -> TcpConfig {
    tcp_checked(transport, ip, &mut |_, _, _, _| {})
}

/// The configuration of a checked SCTP transport over an IP version; the default one for any other.
pub fn sctp(transport: &Protocol, ip: IpVersion) -> SctpConfig {
    sctp_checked(transport, ip, &mut |_, _, _, _| {})
}

/// The largest chunk of a configuration, header included: the unit of cwnd.
pub fn sctp_chunk(config: &SctpConfig, ip: IpVersion) -> u64 {
    let ip = match ip {
        IpVersion::Ipv4 => 20,
        IpVersion::Ipv6 => 40,
    };
    config.mtu as u64 - ip - COMMON_HEADER
}

fn profile<P>(
    name: &str,
    by_name: fn(&str) -> Option<P>,
    names: &[&str],
    complain: &mut Complain<'_>,
) -> Option<P> {
    let profile = by_name(name);
    if profile.is_none() {
        complain(
            "profile",
            format!("found {name:?}, but no profile has this name"),
            name,
            names,
        );
    }
    profile
}

/// Sets the switches that the spec names, through `set`.
fn switches(
    switches: &Switches,
    names: &[&str],
    mut set: impl FnMut(&str, &str) -> Result<(), String>,
    complain: &mut Complain<'_>,
) {
    for (name, value) in switches {
        let key = format!("switches.{name}");
        if !names.contains(&name.as_str()) {
            complain(&key, format!("unknown switch `{name}`"), name, names);
            continue;
        }
        let text = match value {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        if let Err(error) = set(name, &text) {
            complain(&key, error, "", &[]);
        }
    }
}

fn tcp_checked(transport: &Protocol, ip: IpVersion, complain: &mut Complain<'_>) -> TcpConfig {
    let Protocol::Tcp {
        profile: name,
        switches: named,
        segment,
        receive_window,
        initial_window,
        initial_ssthresh,
        delayed_ack,
        limited_transmit,
        clock_tick,
        rto_min,
    } = transport
    else {
        return TcpConfig::default();
    };
    let chosen = match name {
        Some(name) => {
            profile(name, TcpProfile::by_name, TcpProfile::NAMES, complain).unwrap_or_default()
        }
        None => TcpProfile::default(),
    };
    let mut config = TcpConfig::new(chosen);
    if ip == IpVersion::Ipv6 {
        // As large a packet, with 20 bytes of header more.
        config.mss -= 20;
    }
    let names: Vec<&str> = TcpProfile::SWITCHES
        .iter()
        .map(|switch| switch.name)
        .collect();
    switches(
        named,
        &names,
        |name, text| config.profile.set(name, text).map_err(|e| e.to_string()),
        complain,
    );
    if let Some(segment) = segment {
        match u16::try_from(segment.0) {
            Ok(mss @ 1..=65_495) => config.mss = mss,
            _ => complain(
                "segment",
                format!("found \"{segment}\"; a segment has 1 to 65495 B"),
                "",
                &[],
            ),
        }
    }
    let mss = u64::from(config.mss);
    if let Some(window) = receive_window {
        match u32::try_from(window.bytes(mss)) {
            Ok(bytes @ 1..=0x4000_0000) => config.receive_buffer = SctpAmount::Bytes(bytes.into()),
            _ => complain(
                "receive_window",
                format!("found \"{window}\"; a window has 1 B to 1 GiB"),
                "",
                &[],
            ),
        }
    }
    let segments = |amount: &Amount| format!("{} segments", amount.bytes(mss) / mss);
    let seconds = |span: &anabranch_scenario::quantity::Span| format!("{} s", span.seconds());
    let direct = [
        ("initial_window", initial_window.as_ref().map(segments)),
        ("initial_ssthresh", initial_ssthresh.as_ref().map(segments)),
        ("delayed_ack", delayed_ack.map(|on| on.to_string())),
        (
            "limited_transmit",
            limited_transmit.map(|on| on.to_string()),
        ),
        ("clock_tick", clock_tick.as_ref().map(seconds)),
        ("rto_min", rto_min.as_ref().map(seconds)),
    ];
    for (name, value) in direct {
        if let Some(Err(error)) = value.map(|value| config.profile.set(name, &value)) {
            complain(name, error.to_string(), "", &[]);
        }
    }
    config
}

fn sctp_checked(transport: &Protocol, ip: IpVersion, complain: &mut Complain<'_>) -> SctpConfig {
    let Protocol::Sctp {
        profile: name,
        switches: named,
        congestion,
        mtu,
        path_mtu_discovery,
        streams,
        receive_buffer,
        partial_delivery_point,
        initial_window,
        initial_ssthresh,
        delayed_sack,
        heartbeat_interval,
        rto_initial,
        rto_min,
        rto_max,
        path_max_retrans,
        pf_max_retrans,
        primary_switch_max_retrans,
        association_max_retrans,
        allocation,
        rate_estimate,
        reading_rate: _,
        unordered: _,
        multihomed: _,
    } = transport
    else {
        return SctpConfig::default();
    };
    let chosen = match name {
        Some(name) => {
            profile(name, SctpProfile::by_name, SctpProfile::NAMES, complain).unwrap_or_default()
        }
        None => SctpProfile::default(),
    };
    let mut config = SctpConfig::new(chosen);
    let names: Vec<&str> = SctpProfile::SWITCHES
        .iter()
        .map(|switch| switch.name)
        .collect();
    switches(
        named,
        &names,
        |name, text| config.profile.set(name, text).map_err(|e| e.to_string()),
        complain,
    );
    if let Some(name) = congestion {
        match sctp_algorithms::by_name(name) {
            Some(algorithm) => config.congestion = algorithm,
            None => {
                let known: Vec<&str> = sctp_algorithms::ALGORITHMS
                    .iter()
                    .map(|algorithm| algorithm.name)
                    .collect();
                complain(
                    "congestion",
                    format!("found {name:?}, but no congestion control of SCTP has this name"),
                    name,
                    &known,
                );
            }
        }
    }
    if let Some(mtu) = mtu {
        match usize::try_from(mtu.0) {
            Ok(bytes @ 512..=65_535) => config.mtu = bytes,
            _ => complain(
                "mtu",
                format!("found \"{mtu}\"; an MTU has 512 to 65535 B"),
                "",
                &[],
            ),
        }
    }
    config.path_mtu_discovery = path_mtu_discovery.unwrap_or(config.path_mtu_discovery);
    if let Some(streams) = *streams {
        config.outbound_streams = streams;
        config.inbound_streams = config.inbound_streams.max(streams);
    }
    if let Some(allocation) = allocation {
        config.allocation = streams::kind(allocation, config.outbound_streams, complain);
    }
    if let Some(name) = rate_estimate {
        config.rate_estimate = streams::rate_estimate(name, complain);
    }
    if let Some(buffer) = receive_buffer {
        match u32::try_from(buffer.0) {
            Ok(bytes) => config.receive_buffer = bytes,
            Err(_) => complain(
                "receive_buffer",
                format!("found \"{buffer}\"; a buffer has 1500 B to 4 GiB"),
                "",
                &[],
            ),
        }
    }
    if let Some(point) = partial_delivery_point {
        match usize::try_from(point.0) {
            Ok(bytes @ 1..) => config.partial_delivery_point = Some(bytes),
            _ => complain(
                "partial_delivery_point",
                format!("found \"{point}\"; a partial delivery point has at least 1 B"),
                "",
                &[],
            ),
        }
    }
    let chunk = sctp_chunk(&config, ip);
    if let Some(window) = initial_window {
        let units = format!("{} segments", window.bytes(chunk) / chunk);
        if let Err(error) = config.profile.set("initial_window", &units) {
            complain("initial_window", error.to_string(), "", &[]);
        }
    }
    if let Some(amount) = initial_ssthresh {
        config.profile.initial_ssthresh = SctpAmount::Bytes(amount.bytes(chunk));
    }
    config.delayed_sack = delayed_sack.unwrap_or(config.delayed_sack);
    if let Some(interval) = heartbeat_interval {
        config.hb_interval = (interval.0 > 0).then_some(interval.0);
    }
    let [initial, min, max] =
        [rto_initial, rto_min, rto_max].map(|span| span.as_ref().map(|span| span.0));
    if let Some(initial) = initial {
        config.profile.rto_initial.0 = initial;
    }
    config.rto_min = min.unwrap_or(config.rto_min);
    config.rto_max = max.unwrap_or(config.rto_max);
    config.path_max_retrans = path_max_retrans.unwrap_or(config.path_max_retrans);
    config.pf_max_retrans = pf_max_retrans.unwrap_or(config.pf_max_retrans);
    config.primary_switch_max_retrans =
        primary_switch_max_retrans.or(config.primary_switch_max_retrans);
    config.association_max_retrans =
        association_max_retrans.unwrap_or(config.association_max_retrans);
    if let Err(error) = config.check() {
        let (found, allowed) = (&error.found, &error.allowed);
        let message = format!("found {found}; allowed: {allowed}");
        complain(&key_of(error.field, named), message, "", &[]);
    }
    config
}

/// The key of a spec that sets a field of the protocol's configuration.
fn key_of(field: &str, switches: &Switches) -> String {
    match field {
        switch if switches.contains_key(switch) => format!("switches.{switch}"),
        key => key.to_owned(),
    }
}
