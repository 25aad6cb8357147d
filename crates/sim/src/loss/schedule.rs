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
        /// Times, in order, each with the probability from that time on: `[["30 s", 0.05]]`.
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

    /// Packets are lost with the probability at their time of arrival.
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
        // Draws one number even if the probability is 0, so that a change of the schedule does not
        // affect the losses outside of the changed interval.
        rng.chance(self.0.at(at).0)
    }
}
