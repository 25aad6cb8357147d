//! TCP variants as data. Every choice in which RFCs and implementations differ is a named switch
//! with its RFC clause and its reason, so that a scenario can select a profile and change single
//! switches.

mod values;

use anabranch_congestion::registry::{needs_rate_samples, own_floor, own_window};
pub use anabranch_congestion::tcp_newreno::{Growth, HalvingBasis};
pub use anabranch_settings::{Pause, PositiveTime, RetryLimit, Setting, SettingError, WindowSize};
pub use values::{DelayedAckRules, InitialSsthresh, InitialWindow, RecoveryKind, RestartWindow};

use anabranch_settings::{Kind, switches};
use anabranch_transport::Nanos;
use anabranch_transport::time::{MICROSECOND, MILLISECOND, SECOND};

/// Upper bound of the adaptive acknowledgement delay.
pub(crate) const MAX_ADAPTIVE_DELAY: Nanos = 200 * MILLISECOND;
/// Allowed range of all timeouts.
const TIMEOUT: Kind = Kind::duration(MICROSECOND, 86_400 * SECOND);

switches! {
    /// Algorithm of loss recovery. `rfc6675`: uses SACK. `sack1`: the pipe algorithm of 1996 with
    /// SACK, as in ns-2's Sack1. `newreno`: RFC 6582 without SACK; the other two algorithms fall
    /// back to it if the peer does not permit SACK.
    recovery: RecoveryKind, "RFC 6675, RFC 6582", not with rack or congestion in needs_rate_samples or sack = false;
    /// Negotiates selective acknowledgements.
    sack: bool, "RFC 2018 §2";
    /// Negotiates window scaling, for windows above 65535 bytes. Off in `sack1`, because ns-2
    /// counts windows in segments and the papers keep them small.
    window_scale: bool, "RFC 7323 §2";
    /// Negotiates timestamps: each acknowledgement then measures a round-trip time, at a cost of 12
    /// bytes per segment.
    timestamps: bool, "RFC 7323 §3";
    /// Negotiates explicit congestion notification. Routers may then mark packets instead of
    /// dropping them; a mark reduces cwnd without a retransmission. Off in every profile, because
    /// most hosts, and ns-2, use ECN only on request.
    ecn: bool, "RFC 3168 §6.1";
    /// With `ecn`: negotiates accurate feedback (AccECN). The receiver counts the marked packets
    /// and bytes, so the sender knows the share of marks, and each mark of a round trip. If the
    /// peer does not support AccECN, the connection uses the feedback of RFC 3168, or no ECN.
    /// Without AccECN a peer reports only one mark per round trip, so `dctcp` and `prague` need a
    /// receiver that also uses one of them and echoes each mark.
    accurate_ecn: bool, "RFC 9768 §3", needs ecn;
    /// Sends ECT(1) instead of ECT(0): the sender is scalable, and `dualpi2` puts its packets into
    /// the low-delay queue. Only with `ecn` and a congestion control that counts marks (`dctcp`,
    /// `prague`).
    l4s: bool, "RFC 9331 §4.1";
    /// F-RTO: after a timeout, the sender transmits new data when the first retransmitted segment
    /// is acknowledged. If the next acknowledgement also advances, the timeout was spurious, and
    /// the window is restored. Used by Linux.
    frto: bool, "RFC 5682 §2";
    /// Eifel: with `timestamps`, an acknowledgement that echoes a timestamp older than the
    /// retransmission shows that the original segment had arrived, and the window is restored. Used
    /// by Linux.
    eifel: bool, "RFC 3522, RFC 4015", needs timestamps;
    /// With `sack`: the receiver reports duplicate segments (D-SACK). If all retransmissions are
    /// reported as duplicates, they were unnecessary, and the sender restores its window. Used by
    /// Linux.
    dsack: bool, "RFC 2883, RFC 3708", needs sack;
    /// Number of duplicate acknowledgements that indicate a loss.
    duplicate_threshold: u32, "RFC 5681 §3.2", not with rack or congestion in needs_rate_samples;
    /// Sends new data on the first duplicate acknowledgements, before `duplicate_threshold` is
    /// reached. Off in `sack1`, because the ns-2 of the papers does not do this.
    limited_transmit: bool, "RFC 3042", not with rack or congestion in needs_rate_samples or duplicate_threshold = 1;
    /// Initial congestion window.
    initial_window: InitialWindow, "RFC 5681 §3.1";
    /// Initial slow-start threshold. RFC 5681: arbitrarily high. ns-2: the window of the receiver.
    initial_ssthresh: InitialSsthresh, "RFC 5681 §3.1", not with congestion in own_window;
    /// A lost SYN sets ssthresh to two segments, as in ns-2. Off: a lost SYN only reduces the
    /// initial window to one segment.
    lost_syn_cuts_ssthresh: bool, "RFC 5681 §3.1", not with congestion in own_window;
    /// Unit in which cwnd increases: per acknowledgement (`per_ack`), or per acknowledged byte
    /// (`per_byte`).
    growth as window_increase: Growth, "RFC 5681 §3.1", not with congestion in own_window;
    /// Increases cwnd only if the data in flight filled it before the acknowledgement.
    growth_needs_full_cwnd: bool, "RFC 7661 §4.1", not with congestion in own_window or rate_limited_increase;
    /// Quantity that a loss halves. `flightsize`: the bytes in flight. `window`: the smaller of
    /// cwnd and the peer's window (BSD, ns-2).
    halving as loss_reduction_base: HalvingBasis, "RFC 5681 §3.1", not with congestion in own_window;
    /// Halves in whole segments, rounded down: 9 becomes 4 (ns-2 before 2006).
    integer_halving: bool, "RFC 5681 §3.1", not with congestion in own_window;
    /// Keeps cwnd at two segments or more after a fast retransmit. ns-2 limits only ssthresh.
    cwnd_floor: bool, "RFC 5681 §3.2", not with congestion in own_floor;
    /// Uses only whole segments of cwnd, like TCP stacks that count windows in segments.
    whole_segments: bool, "RFC 5681 §3.1", not with congestion in own_window;
    /// cwnd after an idle time longer than the RTO: unchanged (`off`), `one` segment, or the
    /// `initial` window.
    restart_window: RestartWindow, "RFC 5681 §4.1", not with congestion in own_window;
    /// Nagle's algorithm: delays a small segment while earlier data is unacknowledged.
    nagle: bool, "RFC 9293 §3.7.4";
    /// Acknowledges every second full segment, or a single one after `delayed_ack_timeout`. Off:
    /// acknowledges every segment.
    delayed_ack: bool, "RFC 5681 §4.2";
    /// With `delayed_ack`: rules for the time of a delayed acknowledgement. `rfc5681`: sent with
    /// the second full segment, or after `delayed_ack_timeout`. `linux`: the first 16 segments are
    /// acknowledged at once, and so are 16 segments after a pause longer than the RTO or after a
    /// duplicate (quick acknowledgements). Later segments are acknowledged as soon as more than a
    /// full segment has arrived, or after a delay that follows the gaps between segments, from
    /// `delayed_ack_timeout` to 200 ms. A small segment is acknowledged when the application has
    /// read it, unless this end usually replies to the data that it reads.
    delayed_ack_rules: DelayedAckRules, "RFC 5681 §4.2", needs delayed_ack or rack;
    /// Longest delay of an acknowledgement; with `delayed_ack_rules = "linux"` it is the shortest
    /// delay.
    delayed_ack_timeout: PositiveTime => Kind::duration(MICROSECOND, 500 * MILLISECOND), "RFC 9293 §3.8.6.3", needs delayed_ack or rack;
    /// Number of recent blocks that the receiver remembers for the SACK option. ns-2 remembers 3.
    sack_blocks_remembered: u32 => Kind::count(1, 8), "RFC 2018 §4", needs sack;
    /// Retransmission timeout (RTO) before the first measurement. RFC 6298: 1 s. Earlier RFCs and
    /// ns-2: 3 s.
    rto_initial: PositiveTime => TIMEOUT, "RFC 6298 §2.1";
    /// Lower bound of the RTO.
    rto_min: PositiveTime => TIMEOUT, "RFC 6298 §2.4";
    /// Upper bound of the RTO. RFC 6298 requires at least 60 s.
    rto_max: PositiveTime => TIMEOUT, "RFC 6298 §2.5";
    /// After a lost SYN the RTO has this value when data transfer starts, unless the handshake
    /// yielded a measurement. 0: the RTO remains doubled.
    rto_after_lost_syn: Pause, "RFC 6298 §5.7";
    /// Granularity of the clock that measures round-trip times; they are counted in whole ticks,
    /// with the integer arithmetic of BSD. 0: exact. ns-2.1: 100 ms.
    rtt_granularity: Pause, "RFC 6298 §4";
    /// A retransmission of the timed segment cancels its measurement (Karn's rule). Off: only the
    /// start of a fast retransmit and a timeout cancel it (ns-2).
    retransmission_cancels_rtt: bool, "RFC 6298 §3";
    /// A second timeout of the same segment does not change ssthresh. Off: ssthresh is halved
    /// again, down to its minimum (ns-2).
    repeated_timeout_keeps_ssthresh: bool, "RFC 5681 §3.1", not with congestion in own_window;
    /// Number of consecutive timeouts after which the connection fails. 0: never (ns-2).
    retransmission_limit: RetryLimit, "RFC 9293 §3.8.3";
    /// Number of timeouts of a SYN after which the connection fails. 0: never (ns-2).
    syn_retransmission_limit: RetryLimit, "RFC 9293 §3.8.3";
}

/// Name of a profile, and the function that creates it.
type Named = (&'static str, fn() -> Profile);

impl Profile {
    /// Longest delay of an acknowledgement under the rules of this profile.
    pub(crate) fn longest_ack_delay(&self) -> Nanos {
        match self.delayed_ack_rules {
            DelayedAckRules::Rfc5681 => self.delayed_ack_timeout.0,
            DelayedAckRules::Linux => self.delayed_ack_timeout.0.max(MAX_ADAPTIVE_DELAY),
        }
    }

    /// Names and constructors of all profiles.
    const ALL: [Named; 4] = [
        ("rfc6675", Self::rfc6675),
        ("linux", Self::linux),
        ("sack1", Self::sack1),
        ("newreno", Self::newreno),
    ];

    /// Profile names accepted by [`Profile::by_name`].
    pub const NAMES: &'static [&'static str] = &anabranch_settings::names_of(Self::ALL);

    /// The profile with this name; see [`Profile::NAMES`].
    pub fn by_name(name: &str) -> Option<Self> {
        let (_, make) = Self::ALL.into_iter().find(|(known, _)| *known == name)?;
        Some(make())
    }

    /// TCP with SACK according to current RFCs (RFC 9293, 5681, 6298, 6675).
    pub fn rfc6675() -> Self {
        Self {
            name: "rfc6675",
            recovery: RecoveryKind::Rfc6675,
            sack: true,
            window_scale: true,
            timestamps: false,
            ecn: false,
            accurate_ecn: false,
            l4s: false,
            frto: false,
            eifel: false,
            dsack: false,
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
            delayed_ack_rules: DelayedAckRules::Rfc5681,
            delayed_ack_timeout: PositiveTime(200 * MILLISECOND),
            sack_blocks_remembered: 8,
            rto_initial: PositiveTime(SECOND),
            rto_min: PositiveTime(SECOND),
            rto_max: PositiveTime(60 * SECOND),
            rto_after_lost_syn: Pause(3 * SECOND),
            rtt_granularity: Pause(0),
            retransmission_cancels_rtt: true,
            repeated_timeout_keeps_ssthresh: true,
            retransmission_limit: RetryLimit(15),
            syn_retransmission_limit: RetryLimit(6),
        }
    }

    /// NewReno without SACK according to current RFCs (RFC 5681, 6582).
    pub fn newreno() -> Self {
        Self {
            name: "newreno",
            recovery: RecoveryKind::NewReno,
            sack: false,
            ..Self::rfc6675()
        }
    }

    /// TCP as in current Linux, within the limits of these switches. It has an initial window of 10
    /// segments, timestamps, an RTO from 200 ms to 120 s, and quick acknowledgements. Other
    /// acknowledgements are delayed adaptively by 40 to 200 ms, and windows are in whole segments
    /// and grow only when fully used. Separate settings select the congestion control
    /// (`congestion`; the default of Linux is `cubic`), RACK-TLP (`rack`) and PRR
    /// (`proportional_rate_reduction`). Linux enables RACK-TLP and PRR.
    pub fn linux() -> Self {
        Self {
            name: "linux",
            timestamps: true,
            frto: true,
            eifel: true,
            dsack: true,
            initial_window: InitialWindow::Segments(10),
            growth_needs_full_cwnd: true,
            halving: HalvingBasis::Window,
            integer_halving: true,
            whole_segments: true,
            delayed_ack_rules: DelayedAckRules::Linux,
            delayed_ack_timeout: PositiveTime(40 * MILLISECOND),
            sack_blocks_remembered: 4,
            rto_min: PositiveTime(200 * MILLISECOND),
            rto_max: PositiveTime(120 * SECOND),
            ..Self::rfc6675()
        }
    }

    /// Sack1 of ns-2.1 at the time of the papers. It has no limited transmit, halves in whole
    /// segments, measures with a clock of 100 ms ticks, has an RTO of at least 1 s, and
    /// acknowledges each segment.
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
            delayed_ack_timeout: PositiveTime(100 * MILLISECOND),
            window_scale: false,
            sack_blocks_remembered: 3,
            rto_initial: PositiveTime(3 * SECOND),
            rto_after_lost_syn: Pause(0),
            rtt_granularity: Pause(100 * MILLISECOND),
            retransmission_cancels_rtt: false,
            repeated_timeout_keeps_ssthresh: false,
            retransmission_limit: RetryLimit(0),
            syn_retransmission_limit: RetryLimit(0),
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
            "there is no setting `limited_transmitt`; did you mean `limited_transmit`?"
        );
        assert_eq!(
            profile.set("delayed_ack", "yes").unwrap_err().to_string(),
            "`delayed_ack`: found \"yes\"; expected true or false"
        );
        for (switch, wrong) in [
            ("rto_min", "-1 s"),
            ("rto_min", "0 s"),
            ("duplicate_threshold", "0"),
            ("initial_window", "0 segments"),
            ("initial_window", "4"),
            ("rtt_granularity", "NaN s"),
        ] {
            assert!(profile.set(switch, wrong).is_err(), "{switch} = {wrong}");
        }
        profile.set("rtt_granularity", "10 ms").unwrap();
        profile.set("initial_ssthresh", "45 segments").unwrap();
        assert_eq!(
            (profile.rtt_granularity, profile.initial_ssthresh),
            (Pause(10 * MILLISECOND), InitialSsthresh::Segments(45))
        );
    }

    /// Expected values follow RFC 5681 §3.1 and RFC 6928 §2.
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
