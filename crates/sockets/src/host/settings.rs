//! What a socket's options make of an endpoint's settings.

use std::time::Duration;

use anabranch_net::Config;

use crate::options::{ASSOCINFO, DELAYED_SACK, INITMSG, Options, REMOTE_UDP_ENCAPS_PORT, RTOINFO};

const MILLISECOND: u64 = 1_000_000;

/// The settings of an endpoint at `port` by what a program has set; 0 in an option is what the host says.
pub fn endpoint(
    base: &Config,
    options: &Options,
    port: u16,
    accept: bool,
    backlog: usize,
) -> Config {
    base.clone().with(|it| {
        it.port = port;
        it.accept = accept;
        it.backlog = backlog.max(1);
        let sctp = &mut it.sctp;
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
        sctp.delayed_sack = options.word(DELAYED_SACK, 8) != 1;
        if let delay @ 1..=500 = options.word(DELAYED_SACK, 4) {
            sctp.sack_delay = u64::from(delay) * MILLISECOND;
        }
        if let Some(seconds @ 1..) = options.linger() {
            it.linger = Duration::from_secs(u64::from(seconds));
        }
    })
}

/// SCTP_REMOTE_UDP_ENCAPS_PORT: the peer's UDP port, where the program says it.
pub fn peer_udp_port(options: &Options) -> Option<u16> {
    let port = options.short(REMOTE_UDP_ENCAPS_PORT, 132);
    Some(u16::from_be(port)).filter(|&it| it != 0)
}
