//! Bursty losses: a channel with a good and a bad state, whose state may change at each packet
//! (Gilbert 1960, Elliott 1963).

use anabranch_settings::{Kind, KindEntry, kind};
use anabranch_transport::Nanos;

use super::{CHANCE, Loss, Traffic};
use crate::error::BuildError;
use crate::packet::Packet;
use crate::rng::{Probability, Rng};
use crate::step_function::{Cursor, StepFunction};

kind! {
    /// The four probabilities of [`GilbertElliott`].
    #[derive(Clone, Debug, PartialEq)]
    pub struct GilbertElliottConfig {
        /// Probability of a change from the good to the bad state, evaluated at each packet.
        to_bad: StepFunction<f64>, Kind::StepFunction(&CHANCE);
        /// Probability of a change from the bad to the good state, evaluated at each packet.
        to_good: StepFunction<f64>, Kind::StepFunction(&CHANCE);
        /// Probability of loss in the good state.
        loss_good: StepFunction<f64> = 0, Kind::StepFunction(&CHANCE);
        /// Probability of loss in the bad state.
        loss_bad: StepFunction<f64> = 1, Kind::StepFunction(&CHANCE);
    }
    /// Bursty losses: two states, good and bad, each with its own probability of loss (Gilbert
    /// 1960, Elliott 1963).
    pub(super) static ENTRY: KindEntry<Box<dyn Loss>, Traffic> =
        "gilbert-elliott", |config, _| Ok(Box::new(GilbertElliott::new(&config)?));
}

/// Loss model with a good and a bad state; it starts in the good state.
#[derive(Clone, Debug)]
pub struct GilbertElliott {
    to_bad: Cursor<Probability>,
    to_good: Cursor<Probability>,
    loss_good: Cursor<Probability>,
    loss_bad: Cursor<Probability>,
    bad: bool,
}

impl GilbertElliott {
    /// A channel whose probabilities are evaluated at the arrival time of each packet.
    ///
    /// # Errors
    /// [`BuildError::Probability`] if one is outside 0 to 1.
    pub fn new(config: &GilbertElliottConfig) -> Result<Self, BuildError> {
        let cursor = |values: &StepFunction<f64>| values.try_map(Probability::new).map(Cursor::new);
        Ok(Self {
            to_bad: cursor(&config.to_bad)?,
            to_good: cursor(&config.to_good)?,
            loss_good: cursor(&config.loss_good)?,
            loss_bad: cursor(&config.loss_bad)?,
            bad: false,
        })
    }
}

impl Loss for GilbertElliott {
    fn takes(&mut self, at: Nanos, _packet: &Packet, rng: &mut Rng) -> bool {
        let [loss, change] = if self.bad {
            [&mut self.loss_bad, &mut self.to_good]
        } else {
            [&mut self.loss_good, &mut self.to_bad]
        };
        let lost = rng.chance(loss.at(at).0);
        self.bad ^= rng.chance(change.at(at).0);
        lost
    }
}
