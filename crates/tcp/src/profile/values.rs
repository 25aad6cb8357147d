//! What a switch can be set to.

use anabranch_profile::{SwitchValue, spelled};

/// See [`Profile::recovery`](super::Profile::recovery).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryKind {
    /// RFC 6675: lost is what has enough reported above it; NewReno (RFC 6582) where SACK is not negotiated.
    Rfc6675,
    /// The pipe algorithm of 1996, as ns-2's Sack1; NewReno where SACK is not negotiated.
    Sack1,
    /// NewReno (RFC 6582), whatever the options say.
    NewReno,
}
spelled!(RecoveryKind: RecoveryKind::Rfc6675 = "rfc6675", RecoveryKind::Sack1 = "sack1",
    RecoveryKind::NewReno = "newreno");

/// See [`Profile::restart_window`](super::Profile::restart_window).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartWindow {
    /// The window is kept.
    Off,
    /// One segment.
    One,
    /// The initial window (RFC 5681 §4.1).
    Initial,
}
spelled!(RestartWindow: RestartWindow::Off = "off", RestartWindow::One = "one", RestartWindow::Initial = "initial");

/// See [`Profile::initial_window`](super::Profile::initial_window).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialWindow {
    /// 2 to 4 segments by their size (RFC 5681 §3.1, RFC 3390).
    Rfc5681,
    /// 10 segments, at most 14600 bytes or two segments (RFC 6928 §2).
    Rfc6928,
    /// So many segments.
    Segments(u32),
}

impl InitialWindow {
    /// The window for segments of `segment` bytes, in segments.
    pub fn segments(self, segment: u64) -> f64 {
        match self {
            InitialWindow::Segments(count) => f64::from(count.max(1)),
            InitialWindow::Rfc5681 if segment > 2190 => 2.0,
            InitialWindow::Rfc5681 if segment > 1095 => 3.0,
            InitialWindow::Rfc5681 => 4.0,
            InitialWindow::Rfc6928 => {
                (10 * segment).min(14_600.max(2 * segment)) as f64 / segment as f64
            }
        }
    }
}

impl SwitchValue for InitialWindow {
    const ALLOWED: &'static str =
        "\"rfc5681\", \"rfc6928\", or a number of segments from 1 to 1000000";

    fn parse(text: &str) -> Option<Self> {
        match text {
            "rfc5681" => Some(Self::Rfc5681),
            "rfc6928" => Some(Self::Rfc6928),
            number => u32::parse(number)
                .filter(|count| *count > 0)
                .map(Self::Segments),
        }
    }

    fn show(&self) -> String {
        match self {
            Self::Rfc5681 => "rfc5681".to_owned(),
            Self::Rfc6928 => "rfc6928".to_owned(),
            Self::Segments(count) => count.to_string(),
        }
    }
}

/// See [`Profile::initial_ssthresh`](super::Profile::initial_ssthresh).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialSsthresh {
    /// Arbitrarily high.
    High,
    /// The peer's window in whole segments, as its SYN offers it.
    PeerWindow,
    /// So many segments.
    Segments(u32),
}

impl SwitchValue for InitialSsthresh {
    const ALLOWED: &'static str =
        "\"high\", \"peer_window\", or a number of segments from 2 to 1000000";

    fn parse(text: &str) -> Option<Self> {
        match text {
            "high" => Some(Self::High),
            "peer_window" => Some(Self::PeerWindow),
            number => u32::parse(number)
                .filter(|count| *count >= 2)
                .map(Self::Segments),
        }
    }

    fn show(&self) -> String {
        match self {
            Self::High => "high".to_owned(),
            Self::PeerWindow => "peer_window".to_owned(),
            Self::Segments(count) => count.to_string(),
        }
    }
}
