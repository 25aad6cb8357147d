//! Pareto size distribution: few large sizes and many small ones.

use anabranch_settings::{Entry, Kind, kind};

use super::{BYTES, Sizes};
use crate::error::BuildError;
use crate::rng::Rng;

kind! {
    /// The parameters of [`Pareto`].
    struct ParetoConfig {
        /// The least size.
        least: u64, BYTES;
        /// Exponent. The smaller it is, the heavier the tail; sizes of web objects have 1.1 to 1.5.
        shape: f64, Kind::number(0.05, 100.0), "Crovella and Bestavros 1997";
        /// The largest size, at which the distribution is truncated.
        most: u64 = "1024 MiB", BYTES;
    }
    /// The bounded Pareto distribution: P(size > x) falls as x^-shape from `least` to `most`. The
    /// mean of the unbounded distribution is least x shape / (shape - 1), if shape is above 1.
    pub(super) static ENTRY: Entry<Box<dyn Sizes>> = "pareto", |config, ()| {
        Ok(Box::new(Pareto::new(config.least, config.shape, config.most)?))
    };
}

/// The bounded Pareto distribution, drawn by inversion.
#[derive(Clone, Copy, Debug)]
pub struct Pareto {
    least: u64,
    most: u64,
    shape: f64,
    /// P(size > most) of the unbounded distribution.
    beyond: f64,
}

impl Pareto {
    /// From `least` to `most` bytes with the exponent `shape`.
    ///
    /// # Errors
    /// [`BuildError::Workload`] if `least` is 0 or above `most`, or `shape` is not above 0.
    pub fn new(least: u64, shape: f64, most: u64) -> Result<Self, BuildError> {
        if least == 0 || least > most {
            return Err(BuildError::Workload("a least size of 1 B to `most`"));
        }
        if shape.is_nan() || shape <= 0.0 {
            return Err(BuildError::Workload("a shape above 0"));
        }
        Ok(Self {
            least,
            most,
            shape,
            beyond: libm::pow(least as f64 / most as f64, shape),
        })
    }
}

impl Sizes for Pareto {
    fn draw(&mut self, rng: &mut Rng) -> u64 {
        let above = self.beyond + rng.unit() * (1.0 - self.beyond);
        let size = self.least as f64 * libm::pow(above, -1.0 / self.shape);
        (size as u64).clamp(self.least, self.most)
    }

    fn range(&self) -> [u64; 2] {
        [self.least, self.most]
    }
}
