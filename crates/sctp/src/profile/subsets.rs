//! Subsets of the profile for the sender and the receiver. These switches are read several times
//! per packet. A subset fits into one cache line, but the complete profile needs three.

use super::{
    Counts, FastRecovery, Htna, IdleDecay, InitialCwnd, MaxBurst, Profile, RecoveryWaits, WhenFull,
};

/// Declares a subset of the profile: switches with the same names and types.
macro_rules! part {
    ($(#[$meta:meta])* $part:ident: $($switch:ident: $type:ty),+ $(,)?) => {
        $(#[$meta])*
        #[derive(Clone, Debug)]
        pub(crate) struct $part {
            $(pub(crate) $switch: $type,)+
        }

        impl $part {
            /// Copies these switches from `profile`.
            #[inline(always)]
            pub(crate) fn of(profile: &Profile) -> Self {
                Self {
                    $($switch: profile.$switch,)+
                }
            }
        }
    };
}

part! {
    /// Switches that the sender reads.
    SenderProfile:
    ambiguous_answer_clears_errors: bool,
    answer_after_timeout_clears_errors: bool,
    bundle_new_with_retransmissions: bool,
    confirm_paths_before_data: bool,
    cumulative_restarts_t3: bool,
    cwnd_counts: Counts,
    fast_recovery: FastRecovery,
    fast_retransmit_ignores_cwnd: bool,
    fast_retransmit_in_recovery_waits: RecoveryWaits,
    fast_retransmit_once: bool,
    fast_retransmit_restarts_idle_t3: bool,
    flight_counts_marked: bool,
    htna: Htna,
    idle_decay: IdleDecay,
    initial_window: InitialCwnd,
    loss_cancels_rtt: bool,
    max_burst: u32,
    max_burst_applies: MaxBurst,
    missing_reports: u32,
    retransmission_cancels_rtt: bool,
    retransmissions_wait_for_sack: bool,
    rtt_once_per_round_trip: bool,
    rwnd_counts: Counts,
    sack_immediately: bool,
    zero_window_probe_delay: bool,
    reneged_at_once: bool,
}

part! {
    /// Switches that the receiver reads.
    ReceiverProfile:
    rwnd_counts: Counts,
    sack_when_gap_fills: bool,
    receive_buffer_full: WhenFull,
    window_counts_deliverable: bool,
}
