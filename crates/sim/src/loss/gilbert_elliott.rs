//! Losses in bursts: a channel that is good or bad and changes its mind from packet to packet (Gilbert 1960,
//! Elliott 1963).

use anabranch_settings::{Entry, Fallback, Kind, Refusal, Setting, Variant};
use anabranch_transport::Nanos;

use super::{CHANCE, Loss, Traffic};
use crate::error::BuildError;
use crate::over_time::{Cursor, OverTime};
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
                about: " Probability that the state turns bad at a packet.",
                clause: "",
                kind: Kind::OverTime(&CHANCE),
                fallback: Fallback::Required,
            },
            Setting {
                name: "to_good",
                about: " Probability that the state turns good at a packet.",
                clause: "",
                kind: Kind::OverTime(&CHANCE),
                fallback: Fallback::Required,
            },
            Setting {
                name: "loss_good",
                about: " Probability of loss in the good state.",
                clause: "",
                kind: Kind::OverTime(&CHANCE),
                fallback: Fallback::Is("0"),
            },
            Setting {
                name: "loss_bad",
                about: " Probability of loss in the bad state.",
                clause: "",
                kind: Kind::OverTime(&CHANCE),
                fallback: Fallback::Is("1"),
            },
        ],
    },
    build: |parameters, _| {
        let model = GilbertElliott::over_time(&Burst {
            good_to_bad: parameters.get("to_bad")?,
            bad_to_good: parameters.get("to_good")?,
            loss_in_good: parameters.get("loss_good")?,
            loss_in_bad: parameters.get("loss_bad")?,
        });
        Ok(Box::new(model.map_err(Refusal::together)?))
    },
};

/// The four probabilities of the model, fixed or over time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burst<T = f64> {
    /// That a good channel is bad for the next packet.
    pub good_to_bad: T,
    /// That a bad channel is good for the next packet; the mean length of a burst is its inverse.
    pub bad_to_good: T,
    /// That a good channel loses a packet (0 in Gilbert's model).
    pub loss_in_good: T,
    /// That a bad channel loses a packet (1 in the simplest form).
    pub loss_in_bad: T,
}

/// The channel; it begins good.
#[derive(Clone, Debug)]
pub struct GilbertElliott {
    good_to_bad: Cursor<Probability>,
    bad_to_good: Cursor<Probability>,
    loss_in_good: Cursor<Probability>,
    loss_in_bad: Cursor<Probability>,
    bad: bool,
}

impl GilbertElliott {
    /// A channel with these probabilities.
    ///
    /// # Errors
    /// [`BuildError::Probability`] if one is outside 0 to 1.
    pub fn new(burst: Burst) -> Result<Self, BuildError> {
        Self::over_time(&Burst {
            good_to_bad: burst.good_to_bad.into(),
            bad_to_good: burst.bad_to_good.into(),
            loss_in_good: burst.loss_in_good.into(),
            loss_in_bad: burst.loss_in_bad.into(),
        })
    }

    /// A channel with the probabilities of the moment at which a packet comes.
    ///
    /// # Errors
    /// [`BuildError::Probability`] if one is outside 0 to 1.
    pub fn over_time(burst: &Burst<OverTime<f64>>) -> Result<Self, BuildError> {
        let cursor = |values: &OverTime<f64>| values.try_map(Probability::new).map(Cursor::new);
        Ok(Self {
            good_to_bad: cursor(&burst.good_to_bad)?,
            bad_to_good: cursor(&burst.bad_to_good)?,
            loss_in_good: cursor(&burst.loss_in_good)?,
            loss_in_bad: cursor(&burst.loss_in_bad)?,
            bad: false,
        })
    }
}

impl Loss for GilbertElliott {
    fn takes(&mut self, at: Nanos, _packet: &Packet, rng: &mut Rng) -> bool {
        let [loss, change] = if self.bad {
            [&mut self.loss_in_bad, &mut self.bad_to_good]
        } else {
            [&mut self.loss_in_good, &mut self.good_to_bad]
        };
        let lost = rng.chance(loss.at(at).0);
        self.bad ^= rng.chance(change.at(at).0);
        lost
    }
}
