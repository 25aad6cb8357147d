//! Lognormal size distribution.

use anabranch_settings::{Kind, KindEntry, kind};

use super::{BYTES, Sizes};
use crate::error::BuildError;
use crate::rng::Rng;

kind! {
    /// The parameters of [`LogNormal`].
    struct LogNormalConfig {
        /// Median: half of the sizes are smaller.
        median: u64, BYTES;
        /// Standard deviation of ln(size).
        sigma: f64, Kind::number(0.0, 10.0);
        /// Maximum size. A larger sample is drawn again.
        max: u64 = "1024 MiB", BYTES;
    }
    /// Lognormal distribution: ln(size) is normally distributed. Its mean is median x e^(sigma^2 /
    /// 2).
    pub(super) static ENTRY: KindEntry<Box<dyn Sizes>> = "lognormal", |config, ()| {
        Ok(Box::new(LogNormal::new(config.median, config.sigma, config.max)?))
    };
}

/// Lognormal size distribution with a truncated right tail.
#[derive(Clone, Copy, Debug)]
pub struct LogNormal {
    median: u64,
    sigma: f64,
    max: u64,
}

impl LogNormal {
    /// A distribution with the median `median` in bytes, the standard deviation `sigma` of
    /// ln(size), and the maximum `max` in bytes.
    ///
    /// # Errors
    /// [`BuildError::Workload`] if `median` is 0 or above `max`, or `sigma` is negative.
    pub fn new(median: u64, sigma: f64, max: u64) -> Result<Self, BuildError> {
        // Draws above `max` are repeated. Each draw succeeds with a probability of at least 1/2,
        // because the median is not above `max`.
        if median == 0 || median > max {
            return Err(BuildError::Workload("a median of 1 B to `max`"));
        }
        if sigma.is_nan() || sigma < 0.0 {
            return Err(BuildError::Workload("a sigma of at least 0"));
        }
        Ok(Self { median, sigma, max })
    }
}

impl Sizes for LogNormal {
    fn draw(&mut self, rng: &mut Rng) -> u64 {
        loop {
            let size = self.median as f64 * libm::exp(self.sigma * rng.normal());
            if size < self.max as f64 + 1.0 {
                return (size as u64).max(1);
            }
        }
    }

    fn range(&self) -> [u64; 2] {
        [1, self.max]
    }
}
