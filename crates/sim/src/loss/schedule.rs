//! Independent losses whose probability is a step function of time, for example because of
//! handoffs, rain or a jammer.

use anabranch_settings::{Kind, KindEntry, kind};
use anabranch_transport::Nanos;

use super::{CHANCE, Loss, Traffic};
use crate::error::BuildError;
use crate::packet::Packet;
use crate::rng::{Probability, Rng};
use crate::step_function::{Cursor, StepFunction};

kind! {
    /// The parameter of [`Schedule`].
    struct ScheduleConfig {
        /// Changes in the order of time, each with the probability from that time on: `[["30 s",
        /// 0.05]]`.
        steps: Vec<(Nanos, f64)>, Kind::List(&Kind::Tuple(&[Kind::duration(0, Nanos::MAX), CHANCE]));
    }
    /// A probability of loss that changes at given times. The probability is 0 before the first
    /// time.
    pub(super) static ENTRY: KindEntry<Box<dyn Loss>, Traffic> =
        "schedule", |config, _| Ok(Box::new(Schedule::new(config.steps)?));
}

/// Losses with a time-dependent probability.
#[derive(Clone, Debug)]
pub struct Schedule(Cursor<Probability>);

impl Schedule {
    /// From each `(time, probability)` until the next, packets are lost with that probability. No
    /// packet is lost before the first.
    ///
    /// # Errors
    /// [`BuildError::Schedule`] if the times do not increase, [`BuildError::Probability`] outside 0
    /// to 1.
    pub fn new(steps: impl IntoIterator<Item = (Nanos, f64)>) -> Result<Self, BuildError> {
        Self::over_time(&StepFunction::steps(0.0, steps)?)
    }

    /// Loses each packet with the probability at its arrival time.
    ///
    /// # Errors
    /// [`BuildError::Probability`] outside 0 to 1.
    pub fn over_time(probability: &StepFunction<f64>) -> Result<Self, BuildError> {
        let probability = probability.try_map(Probability::new)?;
        Ok(Self(Cursor::new(probability)))
    }
}

impl Loss for Schedule {
    fn takes(&mut self, at: Nanos, _packet: &Packet, rng: &mut Rng) -> bool {
        // Draws a number even if the probability is 0, so that changing one interval of the
        // schedule does not affect losses in other intervals.
        rng.chance(self.0.at(at).0)
    }
}
