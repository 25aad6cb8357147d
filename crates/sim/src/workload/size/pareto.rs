//! Pareto size distribution: few large sizes and many small ones.

use anabranch_settings::{Kind, KindEntry, kind};

use super::{BYTES, Sizes};
use crate::error::BuildError;
use crate::rng::Rng;

kind! {
    /// The parameters of [`Pareto`].
    struct ParetoConfig {
        /// Minimum size.
        min: u64, BYTES;
        /// Exponent. A smaller exponent means a heavier tail; measured exponents of web objects are
        /// 1.1 to 1.5.
        shape: f64, Kind::number(0.05, 100.0), "Crovella and Bestavros 1997";
        /// Maximum size, at which the distribution is truncated.
        max: u64 = "1024 MiB", BYTES;
    }
    /// Bounded Pareto distribution: P(size > x) decreases as x^-shape from `min` to `max`. Without
    /// the bound, the mean is min x shape / (shape - 1) if shape is above 1.
    pub(super) static ENTRY: KindEntry<Box<dyn Sizes>> = "pareto", |config, ()| {
        Ok(Box::new(Pareto::new(config.min, config.shape, config.max)?))
    };
}

/// Bounded Pareto size distribution, drawn by inversion.
#[derive(Clone, Copy, Debug)]
pub struct Pareto {
    min: u64,
    max: u64,
    shape: f64,
    /// P(size > max) of the unbounded distribution.
    beyond: f64,
}

impl Pareto {
    /// Sizes from `min` to `max` bytes with the exponent `shape`.
    ///
    /// # Errors
    /// [`BuildError::Workload`] if `min` is 0 or above `max`, or `shape` is not above 0.
    pub fn new(min: u64, shape: f64, max: u64) -> Result<Self, BuildError> {
        if min == 0 || min > max {
            return Err(BuildError::Workload("a least size of 1 B to `max`"));
        }
        if shape.is_nan() || shape <= 0.0 {
            return Err(BuildError::Workload("a shape above 0"));
        }
        Ok(Self {
            min,
            max,
            shape,
            beyond: libm::pow(min as f64 / max as f64, shape),
        })
    }
}

impl Sizes for Pareto {
    fn draw(&mut self, rng: &mut Rng) -> u64 {
        let above = self.beyond + rng.unit() * (1.0 - self.beyond);
        let size = self.min as f64 * libm::pow(above, -1.0 / self.shape);
        (size as u64).clamp(self.min, self.max)
    }

    fn range(&self) -> [u64; 2] {
        [self.min, self.max]
    }
}
