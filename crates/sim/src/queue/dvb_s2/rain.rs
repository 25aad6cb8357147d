//! Rain attenuation over time (ITU-R P.1853-1 Annex 1 §2): a lognormal process with the memory of a
//! first-order autoregression, minus an offset, and at least 0.
//!
//! The dynamics, the offset and the filter are the same as in ITU-Rpy (`itur/models/itu1853.py`,
//! class `_ITU1853_1`), which discards the first 200,000 samples, as the recommendation requires.
//! ITU-Rpy fits the mean and the deviation to the attenuation of ITU-R P.618; here they are
//! settings. P.1853-2 (2019) is not implemented.

use anabranch_transport::Nanos;

use crate::rng::Rng;

/// Rate at which the correlation of the process decays, 1/s (P.1853-1 Annex 1 §2, step B).
const BETA: f64 = 2e-4;

#[derive(Clone, Debug)]
pub(super) struct Rain {
    m: f64,
    sigma: f64,
    offset: f64,
    /// Correlation of two consecutive samples.
    rho: f64,
    /// Current value of the Gaussian process; `None` before its first sample. That sample is drawn
    /// from the stationary distribution, whereas the recommendation discards the first 200,000
    /// samples.
    x: Option<f64>,
}

impl Rain {
    /// Rain attenuation that is above 0 for the fraction `share` of the time. ln(attenuation +
    /// offset) has this mean and standard deviation.
    pub fn new(share: f64, [m, sigma]: [f64; 2], interval: Nanos) -> Self {
        Self {
            m,
            sigma,
            offset: libm::exp(m + sigma * upper_quantile(share)),
            rho: libm::exp(-BETA * interval as f64 / 1e9),
            x: None,
        }
    }

    /// The next attenuation sample, dB.
    pub fn next(&mut self, rng: &mut Rng) -> f64 {
        let normal = rng.normal();
        let x = match self.x {
            None => normal,
            Some(x) => self.rho * x + libm::sqrt(1.0 - self.rho * self.rho) * normal,
        };
        self.x = Some(x);
        (libm::exp(self.m + self.sigma * x) - self.offset).max(0.0)
    }
}

/// The value that a standard normal variable exceeds with the probability `share`: Q^-1 of
/// P.1853-1.
pub(super) fn upper_quantile(share: f64) -> f64 {
    let exceeds = |x: f64| 0.5 * libm::erfc(x / std::f64::consts::SQRT_2);
    let (mut low, mut high) = (-40.0, 40.0);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if exceeds(middle) > share {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}
