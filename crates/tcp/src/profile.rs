//! Which TCP this is, as data: every choice that texts and implementations differ in is a named switch with its clause
//! and its reason, so that a spec can start from a profile and turn one.

mod values;

pub use anabranch_congestion::tcp_newreno::{Growth, HalvingBasis};
pub use anabranch_settings::{Amount, Limit, Pause, Setting, SettingError, Span};
pub use values::{InitialSsthresh, InitialWindow, RecoveryKind, RestartWindow};

use anabranch_settings::{Kind, switches};
use anabranch_transport::time::{MICROSECOND, MILLISECOND, SECOND};

/// The range of timeouts.
const TIMEOUT: Kind = Kind::duration(MICROSECOND, 86_400 * SECOND);

switches! {
    /// How losses are found and repaired: `rfc6675`, `sack1` (the pipe algorithm of 1996, as ns-2's Sack1) or `newreno`
    /// (RFC 6582), which the other two fall back to where the peer does not permit SACK.
    recovery: RecoveryKind, "RFC 6675, RFC 6582";
    /// Offer and use selective acknowledgements.
    sack: bool, "RFC 2018 §2";
    /// Offer and use window scaling, so that windows may exceed 65535 bytes. Off where windows are as ns-2's sources had them:
    /// counted in segments that no field of 16 bits limits, which the papers keep below it.
    window_scale: bool, "RFC 7323 §2";
    /// Offer and use timestamps: a measurement with each acknowledgement, at 12 bytes a segment.
    timestamps: bool, "RFC 7323 §3";
    /// Offer and use explicit congestion notification: routers may mark text instead of dropping it, which reduces the
    /// window without a retransmission. Off: hosts commonly agree to it only if asked, and ns-2's sources by default do not.
    ecn: bool, "RFC 3168 §6.1";
    /// So many duplicate acknowledgements are a loss: 3.
    duplicate_threshold: u32, "RFC 5681 §3.2";
    /// New data may go out on the duplicate acknowledgements before that number. Since 2001; ns-2 of the papers had none.
    limited_transmit: bool, "RFC 3042";
    /// The first window: `rfc5681` (2 to 4 segments), `rfc6928` (10), or a number of segments.
    initial_window: InitialWindow, "RFC 5681 §3.1";
    /// ssthresh before the first loss: arbitrarily high by the text; ns-2 takes the receiver's window.
    initial_ssthresh: InitialSsthresh, "RFC 5681 §3.1";
    /// A lost SYN leaves ssthresh at two segments, since a timeout is a timeout (ns-2); by the text it only makes the
    /// first window one segment.
    lost_syn_cuts_ssthresh: bool, "RFC 5681 §3.1";
    /// What grows cwnd: each acknowledgement (`per_ack`) or the bytes that it acknowledges (`per_byte`).
    growth: Growth, "RFC 5681 §3.1";
    /// cwnd grows only if the flight filled it before the acknowledgement.
    growth_needs_full_cwnd: bool, "RFC 7661 §4.1";
    /// What a loss halves: the bytes in flight, or the `window` (the lesser of cwnd and the peer's window) as BSD and ns-2.
    halving: HalvingBasis, "RFC 5681 §3.1";
    /// Halve in whole segments, rounding down, so that 9 becomes 4 (ns-2 before 2006).
    integer_halving: bool, "RFC 5681 §3.1";
    /// After a fast retransmit cwnd is two segments at least; ns-2 floors ssthresh only.
    cwnd_floor: bool, "RFC 5681 §3.2";
    /// Only whole segments of cwnd may be used, as where windows are counted in segments.
    whole_segments: bool, "RFC 5681 §3.1";
    /// The window after an idle period longer than the retransmission timeout: `off`, `one` segment or the `initial` one.
    restart_window: RestartWindow, "RFC 5681 §4.1";
    /// Hold back a small segment while data is unacknowledged.
    nagle: bool, "RFC 9293 §3.7.4";
    /// Acknowledge every second full segment, or after `delayed_ack_timeout`; else every segment.
    delayed_ack: bool, "RFC 5681 §4.2";
    /// How long an acknowledgement may be delayed: 500 ms at most.
    delayed_ack_timeout: Span => Kind::duration(MICROSECOND, 500 * MILLISECOND), "RFC 9293 §3.8.6.3";
    /// So many blocks are remembered by recency for the SACK option, 8 at most; ns-2's sink forgets all but 3.
    sack_blocks_remembered: u32 => Kind::count(1, 8), "RFC 2018 §4";
    /// RTO before the first measurement: 1 s since RFC 6298, 3 s before and in ns-2.
    rto_initial: Span => TIMEOUT, "RFC 6298 §2.1";
    /// The least RTO.
    rto_min: Span => TIMEOUT, "RFC 6298 §2.4";
    /// The greatest RTO, 60 s at least by the text.
    rto_max: Span => TIMEOUT, "RFC 6298 §2.5";
    /// A lost SYN makes the RTO this when data begin, unless the handshake was measured; 0: the back-off just goes on.
    rto_after_lost_syn: Pause, "RFC 6298 §5.7";
    /// Granularity of the clock that round-trip times are measured with, whole ticks in BSD's integer arithmetic; 0: exact.
    /// ns-2.1 ticked every 100 ms.
    clock_tick: Pause, "RFC 6298 §4";
    /// Sending the timed segment again ends its measurement (Karn's rule, to the letter). Off: only a fast retransmit or
    /// timeout, as they begin, cancel it (ns-2).
    retransmission_cancels_rtt: bool, "RFC 6298 §3";
    /// A second timeout of the same segment leaves ssthresh alone; ns-2 halves the window of one again, down to its floor.
    repeated_timeout_keeps_ssthresh: bool, "RFC 5681 §3.1";
    /// So many timeouts in a row fail the connection; 0: never (ns-2).
    retransmission_limit: Limit, "RFC 9293 §3.8.3";
    /// So many timeouts of a SYN fail the connection; 0: never (ns-2).
    syn_retransmission_limit: Limit, "RFC 9293 §3.8.3";
}

impl Profile {
    /// The names that [`Profile::by_name`] knows.
    pub const NAMES: &'static [&'static str] = &["rfc6675", "sack1", "newreno"];

    /// The profile of that name; see [`Profile::NAMES`].
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "rfc6675" => Some(Self::rfc6675()),
            "sack1" => Some(Self::sack1()),
            "newreno" => Some(Self::newreno()),
            _ => None,
        }
    }

    /// TCP by the texts in force, with SACK (RFC 9293, 5681, 6298, 6675).
    pub fn rfc6675() -> Self {
        Self {
            name: "rfc6675",
            recovery: RecoveryKind::Rfc6675,
            sack: true,
            window_scale: true,
            timestamps: false,
            ecn: false,
            duplicate_threshold: 3,
            limited_transmit: true,
            initial_window: InitialWindow::Rfc5681,
            initial_ssthresh: InitialSsthresh::High,
            lost_syn_cuts_ssthresh: false,
            growth: Growth::PerByte,
            growth_needs_full_cwnd: false,
            halving: HalvingBasis::FlightSize,
            integer_halving: false,
            cwnd_floor: true,
            whole_segments: false,
            restart_window: RestartWindow::Initial,
            nagle: true,
            delayed_ack: true,
            delayed_ack_timeout: Span(200 * MILLISECOND),
            sack_blocks_remembered: 8,
            rto_initial: Span(SECOND),
            rto_min: Span(SECOND),
            rto_max: Span(60 * SECOND),
            rto_after_lost_syn: Pause(3 * SECOND),
            clock_tick: Pause(0),
            retransmission_cancels_rtt: true,
            repeated_timeout_keeps_ssthresh: true,
            retransmission_limit: Limit(15),
            syn_retransmission_limit: Limit(6),
        }
    }

    /// NewReno by the texts in force, without SACK (RFC 5681, 6582).
    pub fn newreno() -> Self {
        Self {
            name: "newreno",
            recovery: RecoveryKind::NewReno,
            sack: false,
            ..Self::rfc6675()
        }
    }

    /// ns-2's Sack1 as ns-2.1 had it when the papers were written: no limited transmit, integer halving, a clock that
    /// ticks every 100 ms, RTO 1 s at least, each segment acknowledged.
    pub fn sack1() -> Self {
        Self {
            name: "sack1",
            recovery: RecoveryKind::Sack1,
            limited_transmit: false,
            initial_window: InitialWindow::Segments(2),
            initial_ssthresh: InitialSsthresh::PeerWindow,
            lost_syn_cuts_ssthresh: true,
            growth: Growth::PerAck,
            halving: HalvingBasis::Window,
            integer_halving: true,
            cwnd_floor: false,
            whole_segments: true,
            restart_window: RestartWindow::One,
            nagle: false,
            delayed_ack: false,
            delayed_ack_timeout: Span(100 * MILLISECOND),
            window_scale: false,
            sack_blocks_remembered: 3,
            rto_initial: Span(3 * SECOND),
            rto_after_lost_syn: Pause(0),
            clock_tick: Pause(100 * MILLISECOND),
            retransmission_cancels_rtt: false,
            repeated_timeout_keeps_ssthresh: false,
            retransmission_limit: Limit(0),
            syn_retransmission_limit: Limit(0),
            ..Self::rfc6675()
        }
    }
}

impl Default for Profile {
    fn default() -> Self {
        Self::rfc6675()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_switch_reads_what_it_shows() {
        for name in Profile::NAMES {
            let profile = Profile::by_name(name).unwrap();
            assert_eq!(profile.name, *name);
            for switch in Profile::SWITCHES {
                let mut copy = profile.clone();
                let value = profile.show(switch.name).unwrap();
                copy.set(switch.name, &value)
                    .unwrap_or_else(|error| panic!("{name}: {error}"));
                assert_eq!(copy, profile, "{name}: {} = {value}", switch.name);
                assert!(switch.clause.starts_with("RFC"), "{}", switch.name);
            }
        }
        assert_eq!(Profile::by_name("reno"), None);
    }

    #[test]
    fn wrong_switches_are_explained() {
        let mut profile = Profile::sack1();
        assert_eq!(
            profile
                .set("limited_transmitt", "true")
                .unwrap_err()
                .to_string(),
            "there is no setting `limited_transmitt`; the nearest is `limited_transmit`"
        );
        assert_eq!(
            profile.set("delayed_ack", "yes").unwrap_err().to_string(),
            "`delayed_ack`: found \"yes\"; it takes true or false"
        );
        for (switch, wrong) in [
            ("rto_min", "-1 s"),
            ("rto_min", "0 s"),
            ("duplicate_threshold", "0"),
            ("initial_window", "0 segments"),
            ("initial_window", "4"),
            ("clock_tick", "NaN s"),
        ] {
            assert!(profile.set(switch, wrong).is_err(), "{switch} = {wrong}");
        }
        profile.set("clock_tick", "10 ms").unwrap();
        profile.set("initial_ssthresh", "45 segments").unwrap();
        assert_eq!(
            (profile.clock_tick, profile.initial_ssthresh),
            (Pause(10 * MILLISECOND), InitialSsthresh::Segments(45))
        );
    }

    /// RFC 5681 §3.1 and RFC 6928 §2.
    #[test]
    fn initial_windows_by_segment_size() {
        for (segment, small, large) in [
            (536, 4.0, 10.0),
            (1095, 4.0, 10.0),
            (1448, 3.0, 10.0),
            (4000, 2.0, 3.65),
            (9000, 2.0, 2.0),
        ] {
            assert_eq!(InitialWindow::Rfc5681.segments(segment), small, "{segment}");
            assert_eq!(InitialWindow::Rfc6928.segments(segment), large, "{segment}");
        }
    }
}
