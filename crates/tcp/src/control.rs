//! The controller that a configuration asks for.

use anabranch_congestion::tcp_newreno::{TcpNewReno, TcpNewRenoConfig};
use anabranch_congestion::tuning::Tuning;
use anabranch_congestion::{Algorithm, CongestionControl};

use crate::profile::{Profile, RestartWindow};

/// The algorithm, to make a controller of once the handshake has settled the segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Congestion {
    pub algorithm: &'static Algorithm,
    pub tuning: Tuning,
}

impl Congestion {
    /// A controller of text in segments of `mss` bytes; windows in segments.
    pub fn controller(
        &self,
        profile: &Profile,
        mss: u64,
        initial_window: f64,
        initial_ssthresh: f64,
    ) -> Box<dyn CongestionControl> {
        let config = TcpNewRenoConfig {
            segment: mss,
            initial_window,
            initial_ssthresh,
            restart_window: match profile.restart_window {
                RestartWindow::Off => None,
                RestartWindow::One => Some(1.0),
                RestartWindow::Initial => Some(initial_window),
            },
            growth: profile.growth,
            halving_basis: profile.halving,
            integer_halving: profile.integer_halving,
            cwnd_floor: profile.cwnd_floor,
            whole_segments: profile.whole_segments,
        };
        (self.algorithm.make)(Box::new(TcpNewReno::new(config)), &self.tuning)
    }

    /// What its controllers work by.
    pub fn needs(&self, profile: &Profile, mss: u64) -> Needs {
        let control = self.controller(profile, mss, 1.0, f64::INFINITY);
        Needs {
            marks: control.counts_marks(),
            rates: control.wants_rate_samples(),
        }
    }
}

/// What a controller works by, beside acknowledgements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Needs {
    /// Every mark, and how many.
    pub marks: bool,
    /// The rate of delivery, which takes SACK.
    pub rates: bool,
}
