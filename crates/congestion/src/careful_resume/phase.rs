//! Phases of Careful Resume (RFC 9959), and the triggers of their transitions with the names of
//! draft-ietf-tsvwg-careful-resume-qlog.

use anabranch_transport::Nanos;

/// A phase of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The initial data is sent as usual while the path is compared with the saved parameters.
    Reconnaissance,
    /// The window has jumped; unvalidated packets are sent, paced over the current RTT.
    Unvalidated,
    /// All unvalidated packets are sent, and their acknowledgements are awaited.
    Validating,
    /// Congestion was detected after the jump; the window does not grow until the path is drained.
    SafeRetreat,
    /// Careful Resume is not in use: normal congestion control, and observation of the path.
    Normal,
}

impl Phase {
    /// Every phase, in the order of [`Phase::code`].
    pub const ALL: [Self; 5] = [
        Self::Normal,
        Self::Reconnaissance,
        Self::Unvalidated,
        Self::Validating,
        Self::SafeRetreat,
    ];

    /// The number in series files: 0 normal, 1 reconnaissance, 2 unvalidated, 3 validating, 4 safe
    /// retreat.
    pub const fn code(self) -> u8 {
        match self {
            Self::Normal => 0,
            Self::Reconnaissance => 1,
            Self::Unvalidated => 2,
            Self::Validating => 3,
            Self::SafeRetreat => 4,
        }
    }

    /// The name in qlog and in reports.
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

/// The reason of a change of phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trigger {
    /// The path is confirmed, and more data is queued than the window permits.
    CongestionWindowLimited,
    /// The window after the jump is fully used.
    LastUnvalidatedPacketSent,
    /// An unvalidated packet was acknowledged.
    FirstUnvalidatedPacketAcknowledged,
    /// The Unvalidated Phase lasted longer than a round trip.
    RttExceeded,
    /// The sender did not use the jump.
    RateLimited,
    /// All unvalidated packets were acknowledged.
    LastUnvalidatedPacketAcknowledged,
    /// The RTT differs from that of the saved path.
    RttNotValidated,
    /// The RTT fell below half of the saved RTT after the jump.
    PathChanged,
    /// A packet was lost.
    PacketLoss,
    /// The peer reported an ECN mark.
    EcnCe,
    /// The retreat has ended.
    ExitRecovery,
    /// The retransmission timer expired. Not in the qlog draft.
    PersistentCongestion,
    /// The lifetime of the saved parameters has ended. Not in the qlog draft.
    Expired,
    /// The jump would not increase the window. Not in the qlog draft.
    NoLargerWindow,
}

impl Trigger {
    /// The name in qlog.
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

/// A change of phase, with the state after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The time of the transition.
    pub at: Nanos,
    /// The phase before it.
    pub from: Phase,
    /// The phase after it.
    pub to: Phase,
    /// Reason.
    pub trigger: Trigger,
    /// The congestion window, bytes.
    pub cwnd: u64,
    /// PipeSize, bytes.
    pub pipe_size: u64,
}
