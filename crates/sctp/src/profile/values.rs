//! Types of switches that have more values than on and off.

use anabranch_settings::{Choice, Datum, Kind, SettingValue, spelled};

/// See [`Profile::fast_recovery`](super::Profile::fast_recovery).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FastRecovery {
    /// Each SACK that reports losses reduces cwnd once per path (RFC 2960).
    None,
    /// One reduction until the cumulative TSN reaches the highest TSN outstanding at the reduction
    /// (RFC 4960, RFC 9260).
    ExitPoint,
    /// A further reduction only for losses of TSNs above the highest one sent at the last reduction
    /// (ns-2.35).
    RecoveryPoint,
}
spelled!(FastRecovery: FastRecovery::None = "none", FastRecovery::ExitPoint = "exit_point",
    FastRecovery::RecoveryPoint = "recovery_point");

/// See [`super::Profile::fast_retransmit_in_recovery_waits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecoveryWaits {
    /// Each SACK that marks chunks permits one packet (RFC 4960).
    Never,
    /// Chunks marked in fast recovery wait for cwnd (RFC 9260).
    Always,
    /// Marked chunks wait for cwnd if packets are paced.
    Paced,
}
spelled!(RecoveryWaits: RecoveryWaits::Never = "never", RecoveryWaits::Always = "always", RecoveryWaits::Paced = "paced");

/// See [`Profile::htna`](super::Profile::htna).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Htna {
    /// The report of each TSN that is missing below the highest Gap Ack Block counts.
    Off,
    /// Only reports of TSNs below the highest TSN that this SACK newly acknowledges count. If the
    /// cumulative TSN advances in fast recovery, the report of each TSN that is missing below the
    /// highest Gap Ack Block counts.
    PerSack,
    /// Like `PerSack`, but the highest newly acknowledged TSN is kept from earlier SACKs.
    Persistent,
}
spelled!(Htna: Htna::Off = "off", Htna::PerSack = "per_sack", Htna::Persistent = "persistent");

/// See [`Profile::retransmission_path`](super::Profile::retransmission_path).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RetransmissionPath {
    /// Same path as the last transmission, unless it is inactive.
    Same,
    /// Another active path, if there is one.
    Alternate,
    /// Another active path after a timeout, the same path after a fast retransmit.
    AlternateOnTimeout,
    /// Any active path with space in its cwnd; the path of the last transmission is preferred.
    AnyWithRoom,
    /// The active path with the largest cwnd.
    LargestCwnd,
    /// The active path with the largest ssthresh.
    LargestSsthresh,
    /// The active path with the lowest loss ratio.
    LeastLoss,
}
spelled!(RetransmissionPath: RetransmissionPath::Same = "same_path", RetransmissionPath::Alternate = "alternate_path",
    RetransmissionPath::AlternateOnTimeout = "alternate_after_timeout", RetransmissionPath::AnyWithRoom = "any_with_room",
    RetransmissionPath::LargestCwnd = "largest_cwnd", RetransmissionPath::LargestSsthresh = "largest_ssthresh",
    RetransmissionPath::LeastLoss = "least_loss");

/// See [`Profile::dormant_path`](super::Profile::dormant_path).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DormantPath {
    /// The path that was used before.
    Last,
    /// The primary path.
    Primary,
    /// The next path, round robin.
    Hop,
    /// The path with the fewest errors, round robin among paths with equal errors (RFC 7829 §4.1).
    FewestErrors,
}
spelled!(DormantPath: DormantPath::Last = "last", DormantPath::Primary = "primary", DormantPath::Hop = "hop",
    DormantPath::FewestErrors = "fewest_errors");

/// See [`Profile::failed_path_probing`](super::Profile::failed_path_probing).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailedPathProbing {
    /// After HB.interval plus one RTO, like an idle path.
    Interval,
    /// Immediately when the path fails, and after each missing answer.
    AtOnce,
}
spelled!(FailedPathProbing: FailedPathProbing::Interval = "interval", FailedPathProbing::AtOnce = "at_once");

/// See [`Profile::association_errors`](super::Profile::association_errors).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AssociationErrors {
    /// Every T3-rtx timeout, and unanswered HEARTBEATs on the path that carries new data.
    PathInUse,
    /// T3-rtx timeouts and unanswered HEARTBEATs on active paths.
    ActivePaths,
}
spelled!(AssociationErrors: AssociationErrors::PathInUse = "path_in_use",
    AssociationErrors::ActivePaths = "active_paths");

/// See [`Profile::window_unit`](super::Profile::window_unit).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WindowUnit {
    /// The largest DATA chunk, counted like cwnd.
    Pmdcs,
    /// The path MTU.
    Mtu,
}
spelled!(WindowUnit: WindowUnit::Pmdcs = "pmdcs", WindowUnit::Mtu = "mtu");

/// Which bytes of a DATA chunk count for a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Counts {
    /// User data only.
    UserData,
    /// User data and the 16-byte chunk header.
    Chunk,
    /// User data, chunk header and padding.
    PaddedChunk,
}
spelled!(Counts: Counts::UserData = "user_data", Counts::Chunk = "chunk", Counts::PaddedChunk = "padded_chunk");

impl Counts {
    /// Size that counts for one chunk with `user_data` bytes of user data.
    #[inline]
    pub const fn bytes(self, user_data: usize) -> u64 {
        match self {
            Counts::UserData => user_data as u64,
            Counts::Chunk => user_data as u64 + 16,
            Counts::PaddedChunk => (user_data as u64 + 16 + 3) & !3,
        }
    }

    /// Size that counts for several chunks.
    #[inline]
    pub(crate) const fn of_all(self, chunks: Summed) -> u64 {
        match self {
            Counts::UserData => chunks.user_data,
            Counts::Chunk => chunks.user_data + 16 * chunks.count as u64,
            Counts::PaddedChunk => chunks.padded,
        }
    }
}

/// Sums over several chunks, from which each way of counting can be computed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Summed {
    pub(crate) count: u32,
    pub(crate) user_data: u64,
    /// Bytes of complete chunks with header and padding.
    pub(crate) padded: u64,
}

impl Summed {
    /// Adds one chunk with `user_data` bytes of user data.
    #[inline(always)]
    pub(crate) const fn add(&mut self, user_data: usize) {
        self.count += 1;
        self.user_data += user_data as u64;
        self.padded += Counts::PaddedChunk.bytes(user_data);
    }
}

/// See [`Profile::idle_decay`](super::Profile::idle_decay).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IdleDecay {
    /// cwnd does not decay.
    Off,
    /// Once per RTO while no data is outstanding, counted from the last transmission of data.
    Drained,
    /// Once per RTO after the last transmission of data, even if data is outstanding.
    SinceLastSend,
}
spelled!(IdleDecay: IdleDecay::Off = "off", IdleDecay::Drained = "drained",
    IdleDecay::SinceLastSend = "since_last_send");

/// See [`Profile::max_burst_applies`](super::Profile::max_burst_applies).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MaxBurst {
    /// The limit never applies.
    Off,
    /// Whenever data can be sent.
    EachSack,
    /// When a fast retransmitted chunk is cumulatively acknowledged.
    AfterFastRetransmit,
}
spelled!(MaxBurst: MaxBurst::Off = "off", MaxBurst::EachSack = "each_sack",
    MaxBurst::AfterFastRetransmit = "after_fast_retransmit");

/// See [`Profile::receive_buffer_full`](super::Profile::receive_buffer_full).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WhenFull {
    /// A chunk that fills a gap is buffered, even if it does not fit. Other chunks are dropped, and
    /// an immediate SACK is sent.
    Answer,
    /// Chunks that do not fit are dropped without a SACK.
    Silent,
}
spelled!(WhenFull: WhenFull::Answer = "answer", WhenFull::Silent = "silent");

/// See [`Profile::initial_window`](super::Profile::initial_window).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InitialCwnd {
    /// A fixed number of units (`window_unit`). RFC 2960 allows at most 2.
    Units(u64),
    /// As many whole units as fit into this number of bytes, at least one.
    Bytes(u64),
    /// min(4 units, max(2 units, 4380 bytes)).
    Rfc4960,
    /// min(4 units, max(2 units, 4404 bytes)); 4344 instead of 4404 bytes over IPv6.
    Rfc9260,
}

impl InitialCwnd {
    /// Initial cwnd in bytes, with a unit of `unit` bytes.
    pub fn bytes(self, unit: u64, ipv6: bool) -> u64 {
        let between = |bytes: u64| (4 * unit).min(bytes.max(2 * unit));
        match self {
            InitialCwnd::Units(units) => units * unit,
            InitialCwnd::Bytes(bytes) => (bytes / unit).max(1) * unit,
            InitialCwnd::Rfc4960 => between(4380),
            InitialCwnd::Rfc9260 => between(if ipv6 { 4344 } else { 4404 }),
        }
    }
}

impl SettingValue for InitialCwnd {
    const KIND: Kind = Kind::Either(
        &[
            Choice {
                name: "rfc4960",
                about: "min(4 units, max(2 units, 4380 B))",
            },
            Choice {
                name: "rfc9260",
                about: "min(4 units, max(2 units, 4404 B)), 4344 B over IPv6",
            },
        ],
        &Kind::Amount {
            segments: [1, 1_000],
            bytes: [512, 1 << 26],
            counted: "segments",
        },
    );

    fn from_datum(datum: &Datum) -> Option<Self> {
        match datum {
            Datum::Segments(units) => Some(InitialCwnd::Units(*units)),
            Datum::Whole(bytes) => Some(InitialCwnd::Bytes(*bytes)),
            other => match other.text()? {
                "rfc4960" => Some(InitialCwnd::Rfc4960),
                "rfc9260" => Some(InitialCwnd::Rfc9260),
                _ => None,
            },
        }
    }

    fn to_datum(&self) -> Datum {
        match self {
            InitialCwnd::Units(units) => Datum::Segments(*units),
            InitialCwnd::Bytes(bytes) => Datum::Whole(*bytes),
            InitialCwnd::Rfc4960 => Datum::word("rfc4960"),
            InitialCwnd::Rfc9260 => Datum::word("rfc9260"),
        }
    }

    #[inline]
    fn plainly_fits(&self, kind: &Kind) -> bool {
        match (kind, self) {
            (Kind::Either(_, amount), InitialCwnd::Units(units)) => amount.has_segments(*units),
            (Kind::Either(_, amount), InitialCwnd::Bytes(bytes)) => amount.has_bytes(*bytes),
            (Kind::Either(words, _), InitialCwnd::Rfc9260) => {
                words.iter().any(|it| it.name == "rfc9260")
            }
            _ => false,
        }
    }
}
