//! Losses in bursts: a channel that is good or bad and changes its mind from packet to packet (Gilbert 1960,
//! Elliott 1963).

use anabranch_settings::{Entry, Fallback, Refusal, Setting, Variant};
use anabranch_transport::Nanos;

use super::{CHANCE, Loss, Traffic};
use crate::error::BuildError;
use crate::packet::Packet;
use crate::rng::{Probability, Rng};

/// How specs name it.
pub(super) static ENTRY: Entry<Box<dyn Loss>, Traffic> = Entry {
    variant: Variant {
        name: "gilbert-elliott",
        about: " Two states, good and bad, each with its own probability of loss (Gilbert 1960, Elliott 1963).",
        parameters: &[
            Setting {
                name: "to_bad",
                about: " Probability of turning bad at a packet.",
                clause: "",
                kind: CHANCE,
                fallback: Fallback::Required,
            },
            Setting {
                name: "to_good",
                about: " Probability of turning good at a packet.",
                clause: "",
                kind: CHANCE,
                fallback: Fallback::Required,
            },
            Setting {
                name: "loss_good",
                about: " Probability of loss while good.",
                clause: "",
                kind: CHANCE,
                fallback: Fallback::Is("0"),
            },
            Setting {
                name: "loss_bad",
                about: " Probability of loss while bad.",
                clause: "",
                kind: CHANCE,
                fallback: Fallback::Is("1"),
            },
        ],
    },
    build: |parameters, _| {
        let model = GilbertElliott::new(Burst {
            good_to_bad: parameters.get("to_bad")?,
            bad_to_good: parameters.get("to_good")?,
            loss_in_good: parameters.get("loss_good")?,
            loss_in_bad: parameters.get("loss_bad")?,
        });
        Ok(Box::new(model.map_err(Refusal::together)?))
    },
};

/// The four probabilities of the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burst {
    /// That a good channel is bad for the next packet.
    pub good_to_bad: f64,
    /// That a bad channel is good for the next packet; the mean length of a burst is its inverse.
    pub bad_to_good: f64,
    /// That a good channel loses a packet (0 in Gilbert's model).
    pub loss_in_good: f64,
    /// That a bad channel loses a packet (1 in the simplest form).
    pub loss_in_bad: f64,
}

/// The channel; it begins good.
#[derive(Clone, Copy, Debug)]
pub struct GilbertElliott {
    good_to_bad: Probability,
    bad_to_good: Probability,
    loss_in_good: Probability,
    loss_in_bad: Probability,
    bad: bool,
}

impl GilbertElliott {
    /// A channel with these probabilities.
    ///
    /// # Errors
    /// [`BuildError::Probability`] if one is outside 0 to 1.
    pub fn new(burst: Burst) -> Result<Self, BuildError> {
        Ok(Self {
            good_to_bad: Probability::new(burst.good_to_bad)?,
            bad_to_good: Probability::new(burst.bad_to_good)?,
            loss_in_good: Probability::new(burst.loss_in_good)?,
            loss_in_bad: Probability::new(burst.loss_in_bad)?,
            bad: false,
        })
    }
}

impl Loss for GilbertElliott {
    fn takes(&mut self, _at: Nanos, _packet: &Packet, rng: &mut Rng) -> bool {
        let (lost, change) = if self.bad {
            (rng.chance(self.loss_in_bad), rng.chance(self.bad_to_good))
        } else {
            (rng.chance(self.loss_in_good), rng.chance(self.good_to_bad))
        };
        self.bad ^= change;
        lost
    }
}
