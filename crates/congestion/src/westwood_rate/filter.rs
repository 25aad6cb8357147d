//! Filters that smooth rate samples.

use anabranch_transport::Nanos;
use anabranch_transport::time::MILLISECOND;

/// A filter, which computes an estimate `b_k` from samples `s_k` at times `t_k`; the first sample
/// is the first estimate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Filter {
    /// `b_k = s_k`.
    None,
    /// `b_k = keep b_(k-1) + (1 - keep) s_k` (CCR 2004, keep 7/8).
    Ewma {
        /// Weight of the old estimate, 0 to 1.
        keep: f64,
    },
    /// The low-pass filter of Mobicom 2001, discretised by the trapezoidal rule for unevenly spaced
    /// samples: `b_k = ((2 tau / D - 1) b_(k-1) + s_k + s_(k-1)) / (2 tau / D + 1)` with `D = t_k -
    /// t_(k-1)`.
    LowPass {
        /// `tau`, nanoseconds; 1 / tau is the cut-off frequency.
        tau: Nanos,
        /// When `tau / virtual_samples` has passed without an acknowledgement, a virtual sample is
        /// taken, so that `D` stays below `tau / 2` (in the paper: at least 2). 0: none, and an
        /// idle time does not change the estimate.
        virtual_samples: u32,
    },
    /// `b_k = a b_(k-1) + (1 - a) s_k` with `a = (2 tau - D) / (2 tau + D)`, `tau = RTT + gain RTT
    /// (U_max - U_k) / U_max`: stable samples are strongly smoothed, unstable ones little (ABSE).
    /// The instability is `U_k = steadiness U_(k-1) + (1 - steadiness) |s_k - s_(k-1)|`, and
    /// `U_max` the maximum of the last `memory` values.
    Adaptive {
        /// `N`: 10 in the paper.
        gain: f64,
        /// Weight of the old instability, 0 to 1: 0.6 in the paper.
        steadiness: f64,
        /// Number of instability values in the maximum, at most 16: 10 in the paper.
        memory: usize,
    },
}

impl Filter {
    /// tau of 500 ms and two virtual samples per tau.
    pub const MOBICOM_2001: Self = Filter::LowPass {
        tau: 500 * MILLISECOND,
        virtual_samples: 2,
    };
    /// A weight of 7/8 for the old estimate.
    pub const CCR_2004: Self = Filter::Ewma { keep: 0.875 };
    /// The parameters of Globecom 2002.
    pub const ABSE: Self = Filter::Adaptive {
        gain: 10.0,
        steadiness: 0.6,
        memory: 10,
    };
}

/// After this many consecutive virtual samples the influence of earlier ones is negligible:
/// (3/5)^64 is 10^-14.
const MAX_VIRTUAL: u32 = 64;
/// Capacity of the ring of instability values.
const MEMORY: usize = 16;

/// The state of a [`Filter`].
#[derive(Clone, Debug)]
pub(super) struct FilterState {
    filter: Filter,
    /// Time, sample and estimate of the last step.
    last: Option<(Nanos, f64, f64)>,
    /// Virtual samples since the last real one.
    idle_samples: u32,
    unsteadiness: f64,
    /// A ring of the last instability values, and the index of the next.
    recent: [f64; MEMORY],
    next: usize,
}

impl FilterState {
    pub fn new(filter: Filter) -> Self {
        Self {
            filter,
            last: None,
            idle_samples: 0,
            unsteadiness: 0.0,
            recent: [0.0; MEMORY],
            next: 0,
        }
    }

    pub fn estimate(&self) -> Option<f64> {
        self.last.map(|(_, _, estimate)| estimate)
    }

    /// The time of the next virtual sample, if it is due before `until`.
    pub fn virtual_sample_before(&mut self, until: Nanos) -> Option<Nanos> {
        let Filter::LowPass {
            tau,
            virtual_samples,
        } = self.filter
        else {
            return None;
        };
        let (last, _, _) = self.last?;
        if virtual_samples == 0 || self.idle_samples >= MAX_VIRTUAL {
            return None;
        }
        let at = last.saturating_add((tau / Nanos::from(virtual_samples)).max(1));
        if at >= until {
            return None;
        }
        self.idle_samples += 1;
        Some(at)
    }

    /// Ends the idle time.
    pub fn heard(&mut self) {
        self.idle_samples = 0;
    }

    /// Processes the sample of time `at`.
    pub fn take(&mut self, at: Nanos, sample: f64, srtt: Option<Nanos>) {
        let Some((before, last_sample, estimate)) = self.last else {
            self.last = Some((at, sample, sample));
            return;
        };
        let span = at.saturating_sub(before).max(1) as f64;
        let estimate = match self.filter {
            Filter::None => sample,
            Filter::Ewma { keep } => keep * estimate + (1.0 - keep) * sample,
            Filter::LowPass { tau, .. } => {
                let ratio = 2.0 * tau as f64 / span;
                if ratio < 1.0 {
                    // The sampling is too coarse for the filter: the samples themselves are the low
                    // frequencies.
                    (sample + last_sample) / 2.0
                } else {
                    ((ratio - 1.0) * estimate + sample + last_sample) / (ratio + 1.0)
                }
            }
            Filter::Adaptive {
                gain,
                steadiness,
                memory,
            } => {
                let change = (sample - last_sample).abs();
                self.unsteadiness = steadiness * self.unsteadiness + (1.0 - steadiness) * change;
                let worst = self.worst_unsteadiness(memory);
                let rtt = srtt.unwrap_or(0) as f64;
                let calm = if worst > 0.0 {
                    (worst - self.unsteadiness) / worst
                } else {
                    1.0
                };
                let tau = rtt + gain * rtt * calm;
                let keep = ((2.0 * tau - span) / (2.0 * tau + span)).max(0.0);
                keep * estimate + (1.0 - keep) * sample
            }
        };
        self.last = Some((at, sample, estimate));
    }

    /// Stores the current instability and returns the maximum of the last `memory` values.
    fn worst_unsteadiness(&mut self, memory: usize) -> f64 {
        let memory = memory.clamp(1, MEMORY);
        self.next %= memory;
        self.recent[self.next] = self.unsteadiness;
        self.next += 1;
        self.recent[..memory].iter().copied().fold(0.0, f64::max)
    }
}
