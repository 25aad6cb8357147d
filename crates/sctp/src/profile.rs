//! Protocol behavior as data. Every difference between RFC 2960, RFC 4960, RFC 9260 and the SCTP
//! module of ns-2.35 is a named switch with its clause and reason. A spec can therefore start from
//! a profile and change single switches. Switches that begin with `rsctp` are in
//! `profile/rsctp.rs`.

mod rsctp;
mod subsets;
mod values;

pub use anabranch_congestion::binomial::Exponent;
use anabranch_congestion::registry::{own_increase, own_slow_start_exit, own_window};
pub use anabranch_congestion::rsctp::{CongestionFloor, DecreaseUnit, SsthreshRule};
pub use anabranch_congestion::sctp_newreno::UnfilledCredit;
pub use anabranch_settings::{Factor, Fraction, PositiveTime, Setting, SettingError, WindowSize};
pub(crate) use subsets::{ReceiverProfile, SenderProfile};
pub(crate) use values::Summed;
pub use values::{
    AssociationErrors, Counts, DormantPath, FailedPathProbing, FastRecovery, Htna, IdleDecay,
    InitialCwnd, MaxBurst, RecoveryWaits, RetransmissionPath, WhenFull, WindowUnit,
};

use anabranch_congestion::binomial::BinomialParameters;
use anabranch_settings::Kind;
use anabranch_transport::Nanos;
use anabranch_transport::time::{MILLISECOND, SECOND};

pub use rsctp::{HeartbeatLoss, ProbeSize};
use rsctp::{with_rsctp, without_rsctp};

/// Minimum RTO that the settings accept; a host may need longer than this to respond.
pub(crate) const MIN_RTO: Nanos = MILLISECOND;
/// Maximum duration of a timer.
pub(crate) const MAX_SPAN: Nanos = 86_400 * SECOND;
/// Range that timeout settings accept.
const TIMEOUT: Kind = Kind::duration(MIN_RTO, MAX_SPAN);
/// Range that settings of measurement intervals accept.
const INTERVAL: Kind = Kind::duration(MILLISECOND, MAX_SPAN);

with_rsctp! {
    /// Number of SACKs that must report a TSN missing before it is fast retransmitted. RFC 2960: 4.
    /// RFC 4960 and later, and ns-2.35 by default: 3.
    missing_reports: u32, "RFC 9260 §7.2.4", not with rack;
    /// Rule that prevents several reductions of cwnd for losses of one window. `none`: no rule (RFC
    /// 2960); cwnd is reduced once per path by each SACK that brings TSNs to the threshold.
    /// `exit_point`: one reduction until the exit point is acknowledged. `recovery_point`: no
    /// further reduction for TSNs up to the highest TSN sent at the last reduction (ns-2.35).
    fast_recovery: FastRecovery, "RFC 9260 §7.2.4";
    /// Fast retransmit a TSN at most once. Off: the count of reports starts again, as in RFC 2960,
    /// so that a TSN can be fast retransmitted again while its first retransmission is in flight.
    /// No known implementation does this.
    fast_retransmit_once: bool, "RFC 9260 §7.2.4 (5)", not with rack;
    /// Which reports of missing TSNs count (highest TSN newly acknowledged). `per_sack`: reports of
    /// TSNs below the highest TSN that this SACK newly acknowledges (RFC 9260). `persistent`: as
    /// `per_sack`, but the highest TSN is kept from earlier SACKs (ns-2.35). `off`: all reports
    /// (RFC 2960 before RFC 4460 §2.14).
    htna: Htna, "RFC 9260 §7.2.4", not with rack;
    /// Send the first packet of a fast retransmit immediately, regardless of cwnd.
    fast_retransmit_ignores_cwnd: bool, "RFC 9260 §7.2.4 (3)";
    /// Whether chunks that are marked for retransmission in fast recovery wait for cwnd. `always`:
    /// only the packet that starts recovery ignores cwnd (RFC 9260). `never`: each SACK that marks
    /// chunks permits one packet (RFC 4960). `paced`: they wait with `pacing`, or if the congestion
    /// control computes a rate. Without pacing, waiting chunks go in one burst once the flightsize
    /// is below cwnd, and after the overshoot of slow start (1 Gbit/s, 20 ms, a queue of one
    /// bandwidth-delay product) that burst is lost. Goodput was 86 instead of 878 Mbit/s.
    fast_retransmit_in_recovery_waits: RecoveryWaits, "RFC 9260 §7.2.4 (3)",
        not with fast_retransmit_ignores_cwnd = false or fast_recovery = "none";
    /// After the first packet of a fast retransmit or timeout, further retransmissions and new data
    /// wait for any SACK, and then only for cwnd (ns-2.35). Off: they are sent as cwnd permits;
    /// after a timeout only one packet is sent until data on the path is acknowledged (RFC 9260
    /// §7.2.3).
    retransmissions_wait_for_sack: bool, "RFC 9260 §7.2.4";
    /// Fill a packet that contains retransmissions with new data. ns-2.35 does not.
    bundle_new_with_retransmissions: bool, "RFC 9260 §6.1 C", needs bundling;
    /// A fast retransmit of the earliest outstanding chunk always restarts T3-rtx. Off: T3-rtx is
    /// restarted only if other data is in flight (ns-2.35).
    fast_retransmit_restarts_idle_t3: bool, "RFC 9260 §7.2.4 (4)";
    /// Restart T3-rtx of a path when the cumulative TSN passes any chunk that was last sent on this
    /// path (ns-2.35). Off: T3-rtx is restarted when the earliest outstanding chunk on this path is
    /// acknowledged. With one path both values have the same effect.
    cumulative_restarts_t3: bool, "RFC 9260 §6.3.2 R3";
    /// Path of a retransmission if the peer has several addresses. `alternate_after_timeout`:
    /// another path after a timeout, the same after a fast retransmit (RFC 4960, RFC 9260).
    /// `alternate_path`: always another path (RFC 2960; ns-2.35 with rtxToAlt_ 1). `same_path`: the
    /// same path while it is active. For `cmt`, after Iyengar et al. 2006, one of the active paths:
    /// `any_with_room` (space in cwnd), `largest_cwnd`, `largest_ssthresh`, `least_loss`; if
    /// several paths are equal, the same path is preferred.
    retransmission_path: RetransmissionPath, "RFC 9260 §6.4";
    /// A path with more consecutive errors than `pf_max_retrans` becomes potentially failed. It is
    /// probed once per RTO, and carries data only if no other path is active. Off: data waits for
    /// `path_max_retrans` timeouts on a failed path.
    potentially_failed: bool, "RFC 7829 §3";
    /// Path of data while all paths are inactive, which RFC 9260 leaves open. `last`: the path used
    /// before, or with `potentially_failed` the path with the fewest errors. `primary`: the primary
    /// path. `fewest_errors`: RFC 7829 §4.1. `hop`: the next path, round robin (ns-2.35).
    dormant_path: DormantPath, "RFC 9260 §8.2";
    /// When an inactive path is probed. `interval`: as an idle path, with the RTO doubled each
    /// time. `at_once`: when the path fails, and after each missing answer (ns-2.35: after 1, 2, 4,
    /// ... seconds).
    failed_path_probing: FailedPathProbing, "RFC 9260 §8.3", not with heartbeat_interval = "off";
    /// Errors that count towards `association_max_retrans`. `path_in_use`: timeouts of T3-rtx, and
    /// missing answers to HEARTBEATs on the path in use. `active_paths`: timeouts of both kinds on
    /// active paths only (ns-2.35); if all paths are inactive, their timeouts count as well, so
    /// that an association whose peer is gone fails.
    association_errors: AssociationErrors, "RFC 9260 §8.1";
    /// HB.Max.Burst: number of HEARTBEATs per RTO that verify addresses. ns-2.35 has no limit.
    hb_max_burst: u32, "RFC 9260 §5.4";
    /// If a chunk was sent on several paths, its acknowledgment clears the errors of the path used
    /// last, although an earlier transmission on another path may have arrived. RFC 9260 permits
    /// either behaviour. If on, a timeout on the alternate path just before a delayed SACK makes
    /// the failed primary look active again: failover to Linux took six timeouts instead of three.
    ambiguous_answer_clears_errors: bool, "RFC 9260 §8.2";
    /// The acknowledgment of a chunk that timed out and was not retransmitted yet clears the errors
    /// of its path (RFC 7829). If a path fails while SACKs are in flight on it, the next SACK over
    /// another path then makes the failed path active again, which costs one more RTO. Off
    /// (ns-2.35): only an answered HEARTBEAT clears the errors.
    answer_after_timeout_clears_errors: bool, "RFC 7829 §3.2 (10)";
    /// Initial cwnd.
    initial_window: InitialCwnd, "RFC 9260 §7.2.1";
    /// Initial ssthresh. RFC 9260: arbitrarily high. The papers and ns-2.35: the peer's receiver
    /// window.
    initial_ssthresh: WindowSize, "RFC 9260 §7.2.1", not with congestion in own_window;
    /// Minimum ssthresh after a loss, in units of `window_unit`: 2 in RFC 2960, 4 in RFC 4960 and
    /// later.
    ssthresh_floor: u64, "RFC 9260 §7.2.3", not with congestion in own_window;
    /// If cwnd equals ssthresh, use slow start. Off: congestion avoidance.
    slow_start_at_ssthresh: bool, "RFC 9260 §7.2.1", not with congestion in own_slow_start_exit;
    /// L: maximum increase of cwnd by one SACK in slow start, in units of `window_unit`. RFC 9260:
    /// L should be 1 and may be larger. RFC 3465 allows L = 2 for TCP. With delayed SACKs, cwnd
    /// grows by half per round trip with L = 1, and doubles with L = 2. After a timeout L is 1 (RFC
    /// 3465 §2.3). A larger L causes larger bursts; `pacing` spreads them.
    abc_limit: u32, "RFC 9260 §7.2.1", not with congestion in own_window;
    /// Increase cwnd only if the flightsize was at least cwnd before the SACK.
    growth_needs_full_cwnd: bool, "RFC 9260 §7.2.1", not with congestion in own_window or rate_limited_increase;
    /// Increase cwnd only if the SACK advanced the cumulative TSN (RFC 2960, RFC 4960). Off: cwnd
    /// may grow whenever the association is not in fast recovery (RFC 9260).
    growth_needs_cumulative_advance: bool, "RFC 9260 §7.2.1", not with congestion in own_window;
    /// Treatment of `partial_bytes_acked` while cwnd is not fully used: `keep`, `cap` at cwnd, or
    /// `discard`.
    pba_when_underused: UnfilledCredit, "RFC 9260 §7.2.2", not with congestion in own_increase;
    /// Unit of cwnd. `pmdcs`: the largest DATA chunk (RFC 9260, ns-2.35, and the figures of the
    /// papers). `mtu`: the path MTU with all headers (RFC 2960 and RFC 4960 to the letter).
    window_unit: WindowUnit, "RFC 9260 §7.2";
    /// Which bytes of a DATA chunk count for cwnd and flightsize. `padded_chunk`: header, user data
    /// and padding (RFC 9260). `chunk`: header and user data (ns-2.35). `user_data`: user data
    /// only.
    cwnd_counts: Counts, "RFC 9260 §7.2.2";
    /// Which bytes of a DATA chunk count for the receiver window, at both ends. `user_data`: user
    /// data only (RFC 9260). `chunk`: header and user data (ns-2.35). `padded_chunk`: header, user
    /// data and padding.
    rwnd_counts: Counts, "RFC 9260 §6.2.1";
    /// Chunks marked for retransmission count as in flight for cwnd, for the peer's receiver window
    /// and for T3-rtx (ns-2.35). Off: they do not count.
    flight_counts_marked: bool, "RFC 9260 §6.2.1";
    /// A timeout while cwnd is one unit does not change ssthresh (ns-2.35). Off: ssthresh falls to
    /// `ssthresh_floor`.
    repeated_timeout_keeps_ssthresh: bool, "RFC 9260 §7.2.3", not with congestion in own_window;
    /// Decay of cwnd of an idle path, once per RTO. `drained`: starts when no data is outstanding.
    /// `since_last_send`: starts at the last transmission, even if data is outstanding, and ends at
    /// two units (ns-2.35). `off`: no decay.
    idle_decay: IdleDecay, "RFC 9260 §7.2.1", not with congestion in own_window;
    /// Set ssthresh to cwnd before the first decay, so that slow start returns to it (RFC 9260).
    idle_decay_sets_ssthresh: bool, "RFC 9260 §7.2.1", needs idle_decay = "drained", not with congestion in own_window;
    /// A TSN that a SACK with Gap Ack Blocks no longer reports is in flight again immediately, at
    /// most 64 per SACK (ns-2.35). An older SACK that arrives late over another path has the same
    /// effect, and the next report of the TSN clears errors. Off: the TSN is in flight again when
    /// T3-rtx expires, and a second report clears no errors.
    reneged_at_once: bool, "RFC 9260 §6.2.1 D iii";
    /// The sender keeps at most the sum of `send_buffer` and twice `receive_buffer` of data that is
    /// not acknowledged cumulatively, regardless of Gap Ack Blocks. Off: the sender keeps all
    /// unacknowledged data (ns-2.35).
    unacknowledged_bounded: bool, "RFC 9260 §6.2.1 D";
    /// Max.Burst: maximum number of packets of new data in one burst.
    max_burst: u32, "RFC 9260 §6.1 D", needs max_burst_applies;
    /// When Max.Burst applies. `each_sack`: whenever data can be sent; a SACK permits one such
    /// burst for each two packets that it newly acknowledges, because receivers usually acknowledge
    /// every second packet. `after_fast_retransmit`: only when a fast retransmitted chunk is
    /// acknowledged (ns-2.35). `off`: never (RFC 2960 before its errata).
    max_burst_applies: MaxBurst, "RFC 9260 §6.1 D";
    /// RTO before the first measurement. RFC 2960 and RFC 4960: 3 s. RFC 9260: 1 s.
    rto_initial: PositiveTime => TIMEOUT, "RFC 9260 §16";
    /// Measure the round-trip time once per round trip and path. Off: measure with each
    /// acknowledgment of a chunk that was sent only once.
    rtt_once_per_round_trip: bool, "RFC 9260 §6.3.1 C4";
    /// A loss cancels the round-trip measurement in progress, because the timed chunk may be
    /// acknowledged long after its arrival (ns-2.35, after S. Baucke). With
    /// `retransmission_cancels_rtt` this has an effect only if the retransmission has to wait.
    loss_cancels_rtt: bool, "RFC 9260 §6.3.1 C5", not with rtt_once_per_round_trip = false;
    /// A retransmission cancels the round-trip measurement of any later TSN. Off: only a loss that
    /// reduces cwnd cancels the measurement.
    retransmission_cancels_rtt: bool, "RFC 9260 §6.3.1 C5", not with rtt_once_per_round_trip = false;
    /// Probe a closed window first after one RTO, then with increasing intervals. If SACKs answer a
    /// probe while the window stays closed, cwnd is not reduced. Off: one chunk is sent
    /// immediately, and its timeout reduces cwnd (RFC 2960, ns-2.35).
    zero_window_probe_delay: bool, "RFC 9260 §6.1 A";
    /// Set the I bit (RFC 7053), which requests an immediate SACK: on the last DATA before a
    /// shutdown, on a DATA chunk that fills the window alone while more data waits, and if the user
    /// requests it.
    sack_immediately: bool, "RFC 9260 §6.1";
    /// Send no data until every path is confirmed by a HEARTBEAT, which costs one round trip
    /// (ns-2.35). Off: send data on confirmed paths immediately.
    confirm_paths_before_data: bool, "RFC 9260 §5.4";
    /// Discard a COOKIE ECHO whose cookie is older than the INIT or INIT ACK with the peer's
    /// current tag, because it belongs to a setup that the peer has abandoned. In COOKIE-ECHOED,
    /// discard it only until this end has sent its own COOKIE ECHO twice. Off: action B exactly as
    /// specified. The peer's tag is then taken from the cookie; the peer already uses another tag,
    /// so the association is lost.
    late_cookies_discarded: bool, "RFC 9260 §5.2.4 B";
    /// In SHUTDOWN-SENT only packets with DATA restart T2-shutdown. RFC 9260: any packet restarts
    /// it. If the SHUTDOWN is lost and the peer sends HEARTBEATs at intervals shorter than
    /// T2-shutdown, the SHUTDOWN is then never repeated, until T5-shutdown-guard ends the
    /// association. Off in every profile but `ns2`.
    t2_restarts_with_data_only: bool, "RFC 9260 §9.2";
    /// For four RTOs after a graceful shutdown, do not answer data and SACKs with the tag of that
    /// association by an ABORT, because they were only delayed in the network. If such an ABORT
    /// arrives before the SHUTDOWN COMPLETE, or if the SHUTDOWN COMPLETE is lost, a peer that waits
    /// for it reports an aborted association although all data has arrived (2 of 80 transfers over
    /// a network that loses and reorders packets). Off: such packets are treated as out of the
    /// blue.
    late_data_unanswered: bool, "RFC 9260 §8.4 (8)";
    /// Reaction of the receiver to new data that does not fit into its buffer. `answer`: send a
    /// SACK. `silent`: drop it without a SACK, as well as any chunk larger than the free space
    /// (ns-2.35).
    receive_buffer_full: WhenFull, "RFC 9260 §6.2";
    /// Silly window avoidance: do not advertise a window smaller than one MTU, and send a SACK when
    /// the window opens again.
    silly_window_avoidance: bool, "RFC 9260 §6.2";
    /// Complete messages in order occupy the receiver window until the application reads them. Off:
    /// they count as read at once (ns-2.35).
    window_counts_deliverable: bool, "RFC 9260 §6.2";
    /// Send a SACK immediately when a packet fills the last gap, as RFC 5681 §4.2 requires of TCP.
    /// Off: send SACKs immediately only while a gap remains.
    sack_when_gap_fills: bool, "RFC 9260 §6.7", needs delayed_sack, not with sack_frequency = 1;
    /// The SACK that answers a duplicate restarts the count of packets until the next SACK, as any
    /// SACK does. Off (ns-2.35): the packet still counts, so that the next packet is acknowledged
    /// as well. The first packet with DATA also counts if it has several chunks, and a gap is
    /// acknowledged immediately even if a later chunk of the same packet fills it. The first TSN is
    /// acknowledged immediately whenever it arrives, and never counts.
    duplicates_reset_delayed_sack: bool, "RFC 9260 §6.2", needs delayed_sack, not with sack_frequency = 1;
    /// Exponent k of `congestion = "binomial"`: cwnd grows by `alpha / cwnd^k` per round trip.
    binomial_k: Exponent, "ho2008 §2.2", needs congestion = "binomial";
    /// Exponent l of `binomial`: cwnd falls by `beta cwnd^l` at a loss. With `k + l = 1` the
    /// algorithm is fair to TCP.
    binomial_l: Exponent, "ho2008 §2.2", needs congestion = "binomial";
    /// Alpha of `binomial`, in segments.
    binomial_alpha: Factor, "ho2008 §2.2", needs congestion = "binomial";
    /// Beta of `binomial`, in segments.
    binomial_beta: Fraction, "ho2008 §2.2", needs congestion = "binomial";
    /// Negotiate explicit congestion notification in INIT and INIT ACK. Routers may then mark
    /// packets of new DATA instead of dropping them; a mark reduces cwnd without a retransmission.
    /// Off in every profile, because RFC 9260 only reserves the chunk types that RFC 4960
    /// described, and the stacks of the papers did not implement ECN.
    ecn: bool, "RFC 4960 Appendix A";
    /// With `address_changes`: negotiate and accept ASCONF without AUTH as well, as Linux does with
    /// `addip_noauth_enable`. An attacker who learns the verification tag of an association can
    /// then move it to another address. Intended for peers without AUTH, and for simulations, which
    /// have no attackers. Off in every profile.
    asconf_without_auth: bool, "RFC 5061 §4.1.1", needs address_changes;
}

/// Name and constructor of a profile.
type Named = (&'static str, fn() -> Profile);

impl Profile {
    /// All profiles.
    const ALL: [Named; 4] = [
        ("rfc9260", Self::rfc9260),
        ("rfc4960", Self::rfc4960),
        ("rfc2960", Self::rfc2960),
        ("ns2", Self::ns2),
    ];

    /// Names accepted by [`Profile::by_name`].
    pub const NAMES: &'static [&'static str] = &anabranch_settings::names_of(Self::ALL);

    /// Profile with this name; see [`Profile::NAMES`].
    pub fn by_name(name: &str) -> Option<Self> {
        let (_, make) = Self::ALL.into_iter().find(|(known, _)| *known == name)?;
        Some(make())
    }

    /// RFC 9260 (2022), the current standard.
    pub fn rfc9260() -> Self {
        without_rsctp!(Self {
            name: "rfc9260",
            missing_reports: 3,
            fast_recovery: FastRecovery::ExitPoint,
            fast_retransmit_once: true,
            htna: Htna::PerSack,
            fast_retransmit_ignores_cwnd: true,
            fast_retransmit_in_recovery_waits: RecoveryWaits::Paced,
            retransmissions_wait_for_sack: false,
            bundle_new_with_retransmissions: true,
            fast_retransmit_restarts_idle_t3: true,
            cumulative_restarts_t3: false,
            retransmission_path: RetransmissionPath::AlternateOnTimeout,
            ambiguous_answer_clears_errors: false,
            answer_after_timeout_clears_errors: false,
            initial_window: InitialCwnd::Rfc9260,
            initial_ssthresh: WindowSize::Bytes(1 << 30),
            ssthresh_floor: 4,
            slow_start_at_ssthresh: true,
            abc_limit: 1,
            growth_needs_full_cwnd: true,
            growth_needs_cumulative_advance: false,
            pba_when_underused: UnfilledCredit::Cap,
            window_unit: WindowUnit::Pmdcs,
            cwnd_counts: Counts::PaddedChunk,
            rwnd_counts: Counts::UserData,
            flight_counts_marked: false,
            repeated_timeout_keeps_ssthresh: false,
            idle_decay: IdleDecay::Drained,
            idle_decay_sets_ssthresh: true,
            reneged_at_once: false,
            unacknowledged_bounded: true,
            max_burst: 4,
            max_burst_applies: MaxBurst::EachSack,
            rto_initial: PositiveTime(SECOND),
            rtt_once_per_round_trip: true,
            loss_cancels_rtt: true,
            retransmission_cancels_rtt: true,
            zero_window_probe_delay: true,
            sack_immediately: true,
            confirm_paths_before_data: false,
            late_cookies_discarded: true,
            t2_restarts_with_data_only: false,
            late_data_unanswered: true,
            receive_buffer_full: WhenFull::Answer,
            silly_window_avoidance: true,
            window_counts_deliverable: true,
            sack_when_gap_fills: true,
            duplicates_reset_delayed_sack: true,
            potentially_failed: false,
            dormant_path: DormantPath::Last,
            failed_path_probing: FailedPathProbing::Interval,
            association_errors: AssociationErrors::PathInUse,
            hb_max_burst: 1,
            binomial_k: Exponent::HALF,
            binomial_l: Exponent::HALF,
            binomial_alpha: Factor(1.0),
            binomial_beta: Fraction(0.5),
            ecn: false,
            asconf_without_auth: false,
        })
    }

    /// Parameters of the congestion control `binomial`; by default those of the algorithm SQRT.
    pub fn binomial_parameters(&self) -> BinomialParameters {
        let (alpha, beta) = (self.binomial_alpha.0, self.binomial_beta.0);
        BinomialParameters::of(self.binomial_k, self.binomial_l, alpha, beta)
    }

    /// RFC 4960 (2007).
    pub fn rfc4960() -> Self {
        Self {
            name: "rfc4960",
            fast_retransmit_in_recovery_waits: RecoveryWaits::Paced,
            ambiguous_answer_clears_errors: true,
            growth_needs_cumulative_advance: true,
            idle_decay_sets_ssthresh: false,
            sack_immediately: false,
            initial_window: InitialCwnd::Rfc4960,
            pba_when_underused: UnfilledCredit::Keep,
            window_unit: WindowUnit::Mtu,
            cwnd_counts: Counts::PaddedChunk,
            rto_initial: PositiveTime(3 * SECOND),
            sack_when_gap_fills: false,
            ..Self::rfc9260()
        }
    }

    /// RFC 2960 (2000) as interpreted by the papers of 2002: four missing reports, no fast
    /// recovery, an initial cwnd of two units. The unit of cwnd is the largest DATA chunk, because
    /// cwnd in these papers grows in steps of 1448 bytes.
    pub fn rfc2960() -> Self {
        Self {
            name: "rfc2960",
            missing_reports: 4,
            fast_recovery: FastRecovery::None,
            htna: Htna::Off,
            initial_window: InitialCwnd::Units(2),
            initial_ssthresh: WindowSize::Bytes(65_536),
            ssthresh_floor: 2,
            window_unit: WindowUnit::Pmdcs,
            max_burst_applies: MaxBurst::Off,
            loss_cancels_rtt: false,
            retransmission_cancels_rtt: false,
            zero_window_probe_delay: false,
            retransmission_path: RetransmissionPath::Alternate,
            ..Self::rfc4960()
        }
    }

    /// Behavior of the SCTP module of ns-2.35 (University of Delaware, release 3.8) with its
    /// defaults. To reproduce the papers of 2002, a spec should also set `missing_reports = 4`.
    pub fn ns2() -> Self {
        Self {
            name: "ns2",
            missing_reports: 3,
            fast_recovery: FastRecovery::RecoveryPoint,
            fast_retransmit_once: true,
            htna: Htna::Persistent,
            fast_retransmit_ignores_cwnd: true,
            fast_retransmit_in_recovery_waits: RecoveryWaits::Paced,
            retransmissions_wait_for_sack: true,
            bundle_new_with_retransmissions: false,
            fast_retransmit_restarts_idle_t3: false,
            cumulative_restarts_t3: true,
            retransmission_path: RetransmissionPath::Alternate,
            ambiguous_answer_clears_errors: true,
            initial_window: InitialCwnd::Rfc4960,
            initial_ssthresh: WindowSize::Bytes(65_536),
            ssthresh_floor: 4,
            slow_start_at_ssthresh: true,
            abc_limit: 1,
            growth_needs_full_cwnd: true,
            growth_needs_cumulative_advance: true,
            pba_when_underused: UnfilledCredit::Discard,
            window_unit: WindowUnit::Pmdcs,
            cwnd_counts: Counts::Chunk,
            rwnd_counts: Counts::Chunk,
            flight_counts_marked: true,
            repeated_timeout_keeps_ssthresh: true,
            idle_decay: IdleDecay::SinceLastSend,
            idle_decay_sets_ssthresh: false,
            reneged_at_once: true,
            unacknowledged_bounded: false,
            max_burst: 4,
            max_burst_applies: MaxBurst::AfterFastRetransmit,
            rto_initial: PositiveTime(3 * SECOND),
            rtt_once_per_round_trip: true,
            loss_cancels_rtt: true,
            retransmission_cancels_rtt: false,
            zero_window_probe_delay: false,
            sack_immediately: false,
            confirm_paths_before_data: true,
            t2_restarts_with_data_only: true,
            receive_buffer_full: WhenFull::Silent,
            silly_window_avoidance: false,
            window_counts_deliverable: false,
            sack_when_gap_fills: false,
            duplicates_reset_delayed_sack: false,
            potentially_failed: false,
            dormant_path: DormantPath::Hop,
            failed_path_probing: FailedPathProbing::AtOnce,
            association_errors: AssociationErrors::ActivePaths,
            hb_max_burst: 1_000_000,
            ..Self::rfc9260()
        }
    }
}

impl Default for Profile {
    fn default() -> Self {
        Self::rfc9260()
    }
}

#[cfg(test)]
mod tests;
