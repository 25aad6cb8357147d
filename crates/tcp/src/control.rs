//! Congestion control that a configuration selects, and creation of its controllers.

use anabranch_congestion::careful_resume::{CarefulResume, ResumeParameters, SavedParameters};
use anabranch_congestion::parameters::AlgorithmParameters;
use anabranch_congestion::rate_limited::RateLimitedIncrease;
use anabranch_congestion::tcp_newreno::{TcpNewReno, TcpNewRenoConfig};
use anabranch_congestion::{Algorithm, CongestionControl};

use crate::profile::{Profile, RestartWindow};

/// Selected congestion control algorithm and the settings that it needs. The controller itself is
/// created after the handshake, because it depends on the negotiated segment size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Congestion {
    pub algorithm: &'static Algorithm,
    pub tuning: AlgorithmParameters,
    pub rate_limited_increase: bool,
    pub careful_resume: Option<ResumeParameters>,
    pub saved_parameters: Option<SavedParameters>,
}

impl Congestion {
    /// Creates a controller for segments of `mss` data bytes; the initial window and ssthresh are
    /// in segments.
    pub(crate) fn controller(
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
        let mut control = (self.algorithm.make)(Box::new(TcpNewReno::new(config)), &self.tuning);
        if self.rate_limited_increase {
            control = Box::new(RateLimitedIncrease::new(control, mss));
        }
        let Some(parameters) = self.careful_resume else {
            return control;
        };
        let mut resume = CarefulResume::new(control, mss, parameters);
        if let Some(saved) = self.saved_parameters {
            resume.resume(saved);
        }
        Box::new(resume)
    }

    /// Inputs that the controllers of this algorithm need.
    pub(crate) fn needs(&self, profile: &Profile, mss: u64) -> Needs {
        let control = self.controller(profile, mss, 1.0, f64::INFINITY);
        Needs {
            marks: control.counts_marks(),
            rates: control.wants_rate_samples(),
        }
    }
}

/// Inputs that a controller needs in addition to acknowledgements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Needs {
    /// The number of ECN marks.
    pub marks: bool,
    /// The delivery rate, which requires SACK.
    pub rates: bool,
}
