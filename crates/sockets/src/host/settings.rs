//! Settings of an endpoint that result from a socket's options.

use std::net::IpAddr;
use std::time::Duration;

use anabranch_net::Config;
use anabranch_net::sctp::config::SchedulerKind;
use anabranch_net::sctp::{Authentication, ChunkTypes, Config as SctpConfig};

use super::socket::State;
use crate::options::*;

const MILLISECOND: u64 = 1_000_000;

/// The settings of an endpoint at `port`, with the program's options. An option of 0 selects the
/// host's value.
pub(super) fn endpoint(
    base: &Config,
    state: &State,
    port: u16,
    accept: bool,
    backlog: usize,
) -> Config {
    let options = &state.options;
    base.clone().with(|it| {
        it.port = port;
        it.accept = accept;
        it.backlog = backlog.max(1);
        it.addresses = addresses(base, state);
        apply(&mut it.sctp, state);
        if let Some(seconds @ 1..) = options.linger() {
            it.linger = Duration::from_secs(u64::from(seconds));
        }
    })
}

/// Changes the settings of future associations of an endpoint to those of the program's options.
pub(super) fn change(base: &Config, sctp: &mut SctpConfig, state: &State) {
    *sctp = base.sctp.clone();
    apply(sctp, state);
}

fn apply(sctp: &mut SctpConfig, state: &State) {
    let options = &state.options;
    let given = |value: u16, to: &mut u16| {
        if value != 0 {
            *to = value;
        }
    };
    given(options.short(INITMSG, 0), &mut sctp.outbound_streams);
    given(options.short(INITMSG, 2), &mut sctp.inbound_streams);
    if let attempts @ 1.. = options.short(INITMSG, 4) {
        sctp.max_init_retransmits = u32::from(attempts);
    }
    let span = |at| u64::from(options.word(RTOINFO, at)) * MILLISECOND;
    let [initial, most, least] = [span(4), span(8), span(12)];
    if 0 < least && least <= initial && initial <= most {
        (sctp.rto_min, sctp.rto_max) = (least, most);
        sctp.profile.rto_initial.0 = initial;
    }
    if let errors @ 1.. = options.short(ASSOCINFO, 4) {
        sctp.association_max_retrans = u32::from(errors);
    }
    // Like Linux: the sender switches to another path after the first timeout (RFC 7829).
    sctp.profile.potentially_failed = true;
    sctp.delayed_sack = options.word(DELAYED_SACK, 8) != 1;
    if let delay @ 1..=500 = options.word(DELAYED_SACK, 4) {
        sctp.sack_delay = u64::from(delay) * MILLISECOND;
    }
    extend(sctp, state);
    state.dtls.apply(sctp);
}

/// Addresses to which a socket is bound, or else those of the host process; empty: all addresses.
pub(super) fn addresses(base: &Config, state: &State) -> Vec<IpAddr> {
    let bound = state.addresses();
    match bound.is_empty() {
        true => base.addresses.clone(),
        false => bound,
    }
}

/// Sets the extensions that are offered in the handshake, and the options of fragmentation and
/// delivery.
fn extend(sctp: &mut SctpConfig, state: &State) {
    let options = &state.options;
    let on = |option| options.word(option, 4) != 0;
    sctp.partial_reliability = on(PR_SUPPORTED);
    sctp.profile.ecn = on(ECN_SUPPORTED);
    sctp.scheduler = scheduler(options.word(STREAM_SCHEDULER, 4));
    sctp.reconfiguration |= on(RECONFIG_SUPPORTED);
    sctp.interleaving |= on(INTERLEAVING_SUPPORTED);
    if let indication @ 1.. = options.word(ADAPTATION_LAYER, 0) {
        sctp.adaptation_layer = Some(indication);
    }
    let asked = options.word(ENABLE_STREAM_RESET, 4);
    sctp.accept_stream_resets = asked & 1 != 0;
    sctp.accept_association_reset = asked & 2 != 0;
    sctp.accept_added_streams = asked & 4 != 0;
    // The host's value is the option's default, which a program may have changed.
    sctp.authentication = match on(AUTH_SUPPORTED) {
        true => Authentication::On,
        false => Authentication::Off,
    };
    if on(AUTH_SUPPORTED) {
        sctp.auth_keys = state.keys.clone();
        sctp.address_changes |= on(ASCONF_SUPPORTED);
        let chunks = state.authenticated.clone();
        sctp.authenticated_chunks = (!chunks.is_empty()).then(|| ChunkTypes::of(&chunks));
    }
    if let point @ 1.. = options.word(PARTIAL_DELIVERY_POINT, 0) {
        sctp.partial_delivery_point = Some(point as usize);
    }
    // SCTP_MAXSEG is the maximum payload of a DATA chunk. Headers are added: 16 bytes of the chunk,
    // 12 of the packet, 8 of UDP and 20 of IP.
    if let most @ 1.. = options.word(MAXSEG, 4) {
        sctp.mtu = sctp.mtu.min((most as usize + 16 + 12 + 8 + 20).max(576));
    }
}

/// The scheduler with this number in SCTP_STREAM_SCHEDULER. The numbers are Linux's; the schedulers
/// are those of RFC 8260 §4.3.2. The option table has rejected other numbers.
pub(super) fn scheduler(number: u32) -> SchedulerKind {
    match number {
        1 => SchedulerKind::Priority,
        2 => SchedulerKind::RoundRobin,
        3 => SchedulerKind::FairCapacity,
        4 => SchedulerKind::WeightedFair,
        _ => SchedulerKind::Fcfs,
    }
}

/// SCTP_REMOTE_UDP_ENCAPS_PORT: the peer's UDP port, if the program has set it.
pub(super) fn peer_udp_port(options: &SocketOptions) -> Option<u16> {
    // struct sctp_udpencaps: association, address at 8, port at 136.
    let port = options.short(REMOTE_UDP_ENCAPS_PORT, 136);
    Some(u16::from_be(port)).filter(|&it| it != 0)
}
