//! Types of the values that the switches of a profile can have.

use anabranch_settings::{Choice, Datum, Kind, SettingValue, spelled};

/// See [`Profile::recovery`](super::Profile::recovery).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecoveryKind {
    /// RFC 6675: a segment is lost if the peer has reported enough data above it. Falls back to
    /// NewReno (RFC 6582) if SACK is not negotiated.
    Rfc6675,
    /// Pipe algorithm of 1996, as in Sack1 of ns-2. Falls back to NewReno if SACK is not
    /// negotiated.
    Sack1,
    /// NewReno (RFC 6582), regardless of the negotiated options.
    NewReno,
}
spelled!(RecoveryKind: RecoveryKind::Rfc6675 = "rfc6675", RecoveryKind::Sack1 = "sack1",
    RecoveryKind::NewReno = "newreno");

/// See [`Profile::delayed_ack_rules`](super::Profile::delayed_ack_rules).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DelayedAckRules {
    /// The acknowledgement is sent with every second full segment, or after a fixed time (RFC 5681
    /// §4.2).
    Rfc5681,
    /// The first acknowledgements are quick; later ones are sent after an adaptive delay.
    Linux,
}
spelled!(DelayedAckRules: DelayedAckRules::Rfc5681 = "rfc5681", DelayedAckRules::Linux = "linux");

/// See [`Profile::restart_window`](super::Profile::restart_window).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RestartWindow {
    /// The window does not change.
    Off,
    /// The window restarts with a single segment.
    One,
    /// The window restarts with the initial window (RFC 5681 §4.1).
    Initial,
}
spelled!(RestartWindow: RestartWindow::Off = "off", RestartWindow::One = "one", RestartWindow::Initial = "initial");

/// See [`Profile::initial_window`](super::Profile::initial_window).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InitialWindow {
    /// 2 to 4 segments, depending on the segment size (RFC 5681 §3.1, RFC 3390).
    Rfc5681,
    /// 10 segments, limited to the larger of 14600 bytes and two segments (RFC 6928 §2).
    Rfc6928,
    /// This number of segments.
    Segments(u32),
    /// As many whole segments as fit in this number of bytes, but at least one.
    Bytes(u64),
}

impl InitialWindow {
    /// The window in segments, for segments of `segment` bytes.
    pub fn segments(self, segment: u64) -> f64 {
        match self {
            Self::Segments(count) => f64::from(count.max(1)),
            Self::Bytes(bytes) => (bytes / segment).max(1) as f64,
            Self::Rfc5681 if segment > 2190 => 2.0,
            Self::Rfc5681 if segment > 1095 => 3.0,
            Self::Rfc5681 => 4.0,
            Self::Rfc6928 => (10 * segment).min(14_600.max(2 * segment)) as f64 / segment as f64,
        }
    }
}

impl SettingValue for InitialWindow {
    const KIND: Kind = Kind::Either(
        &[
            Choice {
                name: "rfc5681",
                about: "2 to 4 segments by their size",
            },
            Choice {
                name: "rfc6928",
                about: "10 segments, at most 14600 B or two segments",
            },
        ],
        &Kind::Amount {
            segments: [1, 1_000_000],
            bytes: [1, 1 << 30],
            counted: "segments",
        },
    );

    fn from_datum(datum: &Datum) -> Option<Self> {
        match datum {
            Datum::Segments(count) => u32::try_from(*count).ok().map(Self::Segments),
            Datum::Whole(bytes) => Some(Self::Bytes(*bytes)),
            other => match other.text()? {
                "rfc5681" => Some(Self::Rfc5681),
                "rfc6928" => Some(Self::Rfc6928),
                _ => None,
            },
        }
    }

    fn to_datum(&self) -> Datum {
        match self {
            Self::Rfc5681 => Datum::word("rfc5681"),
            Self::Rfc6928 => Datum::word("rfc6928"),
            Self::Segments(count) => Datum::Segments((*count).into()),
            Self::Bytes(bytes) => Datum::Whole(*bytes),
        }
    }
}

/// See [`Profile::initial_ssthresh`](super::Profile::initial_ssthresh).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InitialSsthresh {
    /// Arbitrarily high.
    High,
    /// The window in the peer's SYN, rounded down to whole segments.
    PeerWindow,
    /// This number of segments.
    Segments(u32),
    /// As many whole segments as fit in this number of bytes, but at least two.
    Bytes(u64),
}

impl SettingValue for InitialSsthresh {
    const KIND: Kind = Kind::Either(
        &[
            Choice {
                name: "high",
                about: "arbitrarily high",
            },
            Choice {
                name: "peer_window",
                about: "the window that the peer's SYN offers, in whole segments",
            },
        ],
        &Kind::Amount {
            segments: [2, 1_000_000],
            bytes: [1, 1 << 40],
            counted: "segments",
        },
    );

    fn from_datum(datum: &Datum) -> Option<Self> {
        match datum {
            Datum::Segments(count) => u32::try_from(*count).ok().map(Self::Segments),
            Datum::Whole(bytes) => Some(Self::Bytes(*bytes)),
            other => match other.text()? {
                "high" => Some(Self::High),
                "peer_window" => Some(Self::PeerWindow),
                _ => None,
            },
        }
    }

    fn to_datum(&self) -> Datum {
        match self {
            Self::High => Datum::word("high"),
            Self::PeerWindow => Datum::word("peer_window"),
            Self::Segments(count) => Datum::Segments((*count).into()),
            Self::Bytes(bytes) => Datum::Whole(*bytes),
        }
    }
}
