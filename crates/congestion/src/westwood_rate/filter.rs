//! Filters that smooth rate samples.

use anabranch_transport::Nanos;
use anabranch_transport::time::MILLISECOND;

/// A filter computes the estimates `b_k` from the samples `s_k` at the times `t_k`; the first
/// sample is the first estimate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Filter {
    /// No filter: `b_k = s_k`.
    None,
    /// Exponential average: `b_k = keep b_(k-1) + (1 - keep) s_k` (CCR 2004, keep 7/8).
    Ewma {
        /// Weight of the old estimate, 0 to 1.
        keep: f64,
    },
    /// Low-pass filter of Mobicom 2001, discretised by the trapezoidal rule for unevenly spaced
    /// samples: `b_k = ((2 tau / D - 1) b_(k-1) + s_k + s_(k-1)) / (2 tau / D + 1)` with `D = t_k -
    /// t_(k-1)`.
    LowPass {
        /// `tau`, nanoseconds; the cut-off frequency is 1 / tau.
        tau: Nanos,
        /// Number of virtual samples per `tau`; the paper requires at least 2, so that `D` is at
        /// most `tau / 2`. A virtual sample is taken when `tau / virtual_samples` has passed
        /// without an acknowledgement. With 0 there are no virtual samples, and an idle time does
        /// not change the estimate.
        virtual_samples: u32,
    },
    /// Adaptive filter (ABSE): `b_k = a b_(k-1) + (1 - a) s_k` with `a = (2 tau - D) / (2 tau +
    /// D)`, `D = t_k - t_(k-1)` and `tau = RTT + gain RTT (U_max - U_k) / U_max`. `U_k` is
    /// the instability of the samples, `U_k = steadiness U_(k-1) + (1 - steadiness) |s_k -
    /// s_(k-1)|`, and `U_max` is the maximum of its last `memory` values. Stable samples are
    /// smoothed strongly, and unstable samples only little.
    Adaptive {
        /// `N`; the paper uses 10.
        gain: f64,
        /// Weight of the old instability, 0 to 1; the paper uses 0.6.
        steadiness: f64,
        /// Number of instability values of which the maximum is taken, at most 16; the paper
        /// uses 10.
        memory: usize,
    },
}

impl Filter {
    /// Filter of Mobicom 2001: tau is 500 ms, with two virtual samples per tau.
    pub const MOBICOM_2001: Self = Self::LowPass {
        tau: 500 * MILLISECOND,
        virtual_samples: 2,
    };
    /// Filter of CCR 2004: the weight of the old estimate is 7/8.
    pub const CCR_2004: Self = Self::Ewma { keep: 0.875 };
    /// Filter of Globecom 2002.
    pub const ABSE: Self = Self::Adaptive {
        gain: 10.0,
        steadiness: 0.6,
        memory: 10,
    };
}

/// Maximum number of consecutive virtual samples, after which earlier samples have a negligible
/// influence: (3/5)^64 is 10^-14.
const MAX_VIRTUAL: u32 = 64;
/// Capacity of the ring of instability values.
const MEMORY: usize = 16;

/// State of a [`Filter`].
#[derive(Clone, Debug)]
pub(super) struct FilterState {
    filter: Filter,
    /// Time, sample and estimate of the last step; `None` before the first.
    last: Option<(Nanos, f64, f64)>,
    /// Number of virtual samples since the last real one.
    idle_samples: u32,
    unsteadiness: f64,
    /// Ring of the last instability values, and the index of the next one.
    recent: [f64; MEMORY],
    next: usize,
}

impl FilterState {
    pub(super) fn new(filter: Filter) -> Self {
        Self {
            filter,
            last: None,
            idle_samples: 0,
            unsteadiness: 0.0,
            recent: [0.0; MEMORY],
            next: 0,
        }
    }

    pub(super) fn estimate(&self) -> Option<f64> {
        self.last.map(|(_, _, estimate)| estimate)
    }

    /// Time of the next virtual sample, if it is due before `until`.
    pub(super) fn virtual_sample_before(&mut self, until: Nanos) -> Option<Nanos> {
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

    /// Ends the idle time, because a real sample follows.
    pub(super) fn heard(&mut self) {
        self.idle_samples = 0;
    }

    /// Processes the sample at the time `at`.
    pub(super) fn take(&mut self, at: Nanos, sample: f64, srtt: Option<Nanos>) {
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
                    // The samples are too far apart for the filter, so they already contain only
                    // low frequencies.
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

    /// Stores the current instability. Returns the maximum of the last `memory` values.
    fn worst_unsteadiness(&mut self, memory: usize) -> f64 {
        let memory = memory.clamp(1, MEMORY);
        self.next %= memory;
        self.recent[self.next] = self.unsteadiness;
        self.next += 1;
        self.recent[..memory].iter().copied().fold(0.0, f64::max)
    }
}
