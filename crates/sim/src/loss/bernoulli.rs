//! Bernoulli losses: each packet is lost independently of the others.

use anabranch_settings::{Kind, KindEntry, kind};
use anabranch_transport::Nanos;

use super::{CHANCE, Loss, Schedule, Traffic};
use crate::error::BuildError;
use crate::packet::Packet;
use crate::rng::{Probability, Rng};
use crate::step_function::StepFunction;

kind! {
    /// The parameters of [`Bernoulli`].
    struct BernoulliConfig {
        /// Probability that a packet is lost.
        probability: StepFunction<f64>, Kind::StepFunction(&CHANCE);
    }
    /// Each packet is lost independently, with the same probability.
    pub(super) static ENTRY: KindEntry<Box<dyn Loss>, Traffic> = "bernoulli", |config, _| {
        Ok(match config.probability.as_constant() {
            Some(always) => Box::new(Bernoulli::new(always)?),
            None => Box::new(Schedule::over_time(&config.probability)?),
        })
    };
}

/// Loss model that drops each packet independently with the same probability.
#[derive(Clone, Copy, Debug)]
pub struct Bernoulli {
    probability: Probability,
}

impl Bernoulli {
    /// Losses with the given probability.
    ///
    /// # Errors
    /// [`BuildError::Probability`] outside 0 to 1.
    pub fn new(probability: f64) -> Result<Self, BuildError> {
        Ok(Self {
            probability: Probability::new(probability)?,
        })
    }
}

impl Loss for Bernoulli {
    #[inline]
    fn takes(&mut self, _at: Nanos, _packet: &Packet, rng: &mut Rng) -> bool {
        rng.chance(self.probability)
    }
}
