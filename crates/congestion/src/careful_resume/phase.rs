//! Phases of Careful Resume (RFC 9959), and triggers of phase changes, with the names of
//! draft-ietf-tsvwg-careful-resume-qlog.

use anabranch_transport::Nanos;

/// Phase of a flow with Careful Resume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The initial data is sent as usual, while the path is compared with the saved parameters.
    Reconnaissance,
    /// The window has jumped, and unvalidated packets are sent, paced over the current RTT.
    Unvalidated,
    /// All unvalidated packets are sent, and their acknowledgements have not all arrived.
    Validating,
    /// Congestion was detected after the jump, and the window does not grow until the path is
    /// drained.
    SafeRetreat,
    /// Careful Resume is not in use: the controller works as usual, and the path is observed.
    Normal,
}

impl Phase {
    /// All phases, in the order of [`Phase::code`].
    pub const ALL: [Self; 5] = [
        Self::Normal,
        Self::Reconnaissance,
        Self::Unvalidated,
        Self::Validating,
        Self::SafeRetreat,
    ];

    /// Number of the phase in series files: 0 normal, 1 reconnaissance, 2 unvalidated, 3
    /// validating, 4 safe retreat.
    pub const fn code(self) -> u8 {
        match self {
            Self::Normal => 0,
            Self::Reconnaissance => 1,
            Self::Unvalidated => 2,
            Self::Validating => 3,
            Self::SafeRetreat => 4,
        }
    }

    /// Name of the phase in qlog and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Reconnaissance => "reconnaissance",
            Self::Unvalidated => "unvalidated",
            Self::Validating => "validating",
            Self::SafeRetreat => "safe_retreat",
        }
    }
}

/// Reason for a change of phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trigger {
    /// The path is confirmed, and more data is queued than the window permits to send.
    CongestionWindowLimited,
    /// The window after the jump has been fully used.
    LastUnvalidatedPacketSent,
    /// An unvalidated packet was acknowledged.
    FirstUnvalidatedPacketAcknowledged,
    /// The Unvalidated Phase has lasted longer than a round trip.
    RttExceeded,
    /// The sender had too little data to use the jump.
    RateLimited,
    /// All unvalidated packets were acknowledged.
    LastUnvalidatedPacketAcknowledged,
    /// The RTT differs from the saved RTT.
    RttNotValidated,
    /// After the jump the RTT fell below half of the saved RTT.
    PathChanged,
    /// A packet was lost.
    PacketLoss,
    /// The peer reported an ECN mark.
    EcnCe,
    /// The Safe Retreat Phase has ended.
    ExitRecovery,
    /// The retransmission timer expired. This trigger is not in the qlog draft.
    PersistentCongestion,
    /// The lifetime of the saved parameters has expired. This trigger is not in the qlog draft.
    Expired,
    /// The jump would not increase the window. This trigger is not in the qlog draft.
    NoLargerWindow,
}

impl Trigger {
    /// Name of the trigger in qlog.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CongestionWindowLimited => "congestion_window_limited",
            Self::LastUnvalidatedPacketSent => "last_unvalidated_packet_sent",
            Self::FirstUnvalidatedPacketAcknowledged => "first_unvalidated_packet_acknowledged",
            Self::RttExceeded => "rtt_exceeded",
            Self::RateLimited => "rate_limited",
            Self::LastUnvalidatedPacketAcknowledged => "last_unvalidated_packet_acknowledged",
            Self::RttNotValidated => "rtt_not_validated",
            Self::PathChanged => "path_changed",
            Self::PacketLoss => "packet_loss",
            Self::EcnCe => "ECN_CE",
            Self::ExitRecovery => "exit_recovery",
            Self::PersistentCongestion => "persistent_congestion",
            Self::Expired => "expired",
            Self::NoLargerWindow => "no_larger_window",
        }
    }
}

/// A change of phase, with the state after the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// Time of the change, nanoseconds.
    pub at: Nanos,
    /// Phase before the change.
    pub from: Phase,
    /// Phase after the change.
    pub to: Phase,
    /// Reason for the change.
    pub trigger: Trigger,
    /// Congestion window, bytes.
    pub cwnd: u64,
    /// PipeSize, bytes.
    pub pipe_size: u64,
}
