//! Each packet is lost with one probability, whatever happened to the others.

use anabranch_settings::{Entry, Fallback, Kind, Refusal, Setting, Variant};
use anabranch_transport::Nanos;

use super::{CHANCE, Loss, Schedule, Traffic};
use crate::error::BuildError;
use crate::over_time::OverTime;
use crate::packet::Packet;
use crate::rng::{Probability, Rng};

/// How specs name it.
pub(super) static ENTRY: Entry<Box<dyn Loss>, Traffic> = Entry {
    variant: Variant {
        name: "bernoulli",
        about: " Each packet is lost independently, with the same probability.",
        parameters: &[Setting {
            name: "probability",
            about: " Probability that a packet is lost.",
            clause: "",
            kind: Kind::OverTime(&CHANCE),
            fallback: Fallback::Required,
        }],
    },
    build: |parameters, _| {
        let probability: OverTime<f64> = parameters.get("probability")?;
        Ok(match probability.as_constant() {
            Some(always) => Box::new(Bernoulli::new(always).map_err(Refusal::together)?),
            None => Box::new(Schedule::over_time(&probability).map_err(Refusal::together)?),
        })
    },
};

/// Independent losses.
#[derive(Clone, Copy, Debug)]
pub struct Bernoulli {
    probability: Probability,
}

impl Bernoulli {
    /// Losses of the given probability.
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
