//! Sizes whose logarithms are normally distributed.

use anabranch_settings::{Entry, Fallback, Kind, Refusal, Setting, Variant};

use super::{Sizes, bytes, unit};
use crate::error::BuildError;
use crate::rng::Rng;

/// How specs name it.
pub(super) static ENTRY: Entry<Box<dyn Sizes>> = Entry {
    variant: Variant {
        name: "lognormal",
        about: " The lognormal distribution: ln(size) is normal. Its mean is median x e^(sigma^2 / 2).",
        parameters: &[
            bytes(
                "median",
                " Half of the sizes are smaller.",
                Fallback::Required,
            ),
            Setting {
                name: "sigma",
                about: " The standard deviation of ln(size).",
                clause: "",
                kind: Kind::Number {
                    least: 0.0,
                    most: 10.0,
                    above: false,
                    step: 0.0,
                },
                fallback: Fallback::Required,
            },
            bytes(
                "most",
                " The largest size. What would be larger is drawn again.",
                Fallback::Is("1024 MiB"),
            ),
        ],
    },
    build: |parameters, ()| {
        let (median, most) = (parameters.get("median")?, parameters.get("most")?);
        let sizes = LogNormal::new(median, parameters.get("sigma")?, most);
        Ok(Box::new(sizes.map_err(Refusal::together)?))
    },
};

/// The lognormal distribution, its right tail cut off.
#[derive(Clone, Copy, Debug)]
pub struct LogNormal {
    median: u64,
    sigma: f64,
    most: u64,
}

impl LogNormal {
    /// Half of the sizes below `median` bytes, the standard deviation of ln(size) `sigma`, and none above `most` bytes.
    ///
    /// # Errors
    /// [`BuildError::Workload`] if `median` is 0 or above `most`, or `sigma` is negative.
    pub fn new(median: u64, sigma: f64, most: u64) -> Result<Self, BuildError> {
        // Draws above `most` are repeated: with a median below, each of them succeeds by one half at least.
        if median == 0 || median > most {
            return Err(BuildError::Workload("a median of 1 B to `most`"));
        }
        if sigma.is_nan() || sigma < 0.0 {
            return Err(BuildError::Workload("a sigma of at least 0"));
        }
        Ok(Self {
            median,
            sigma,
            most,
        })
    }
}

/// A number with the standard normal distribution (G. Marsaglia and T. A. Bray, "A Convenient Method for Generating Normal
/// Variables", 1964: the polar method; one of its two numbers).
fn normal(rng: &mut Rng) -> f64 {
    loop {
        let (u, v) = (2.0 * unit(rng) - 1.0, 2.0 * unit(rng) - 1.0);
        let square = u * u + v * v;
        if square > 0.0 && square < 1.0 {
            return u * libm::sqrt(-2.0 * libm::log(square) / square);
        }
    }
}

impl Sizes for LogNormal {
    fn draw(&mut self, rng: &mut Rng) -> u64 {
        loop {
            let size = self.median as f64 * libm::exp(self.sigma * normal(rng));
            if size < self.most as f64 + 1.0 {
                return (size as u64).max(1);
            }
        }
    }

    fn range(&self) -> [u64; 2] {
        [1, self.most]
    }
}
