//! A delay with a random part for each packet.

use anabranch_settings::{Entry, Fallback, Kind, Refusal, Setting, Value, Variant};
use anabranch_transport::Nanos;

use super::{DELAY, Propagation, TIME, Varying};
use crate::packet::Packet;
use crate::rng::Rng;

/// How specs name it.
pub(super) static ENTRY: Entry<Box<dyn Propagation>> = Entry {
    variant: Variant {
        name: "jitter",
        about: " A delay with a random part for each packet (jitter).",
        parameters: &[
            DELAY,
            Setting {
                name: "jitter",
                about: " The random part: its maximum if `uniform`, its mean if `exponential`.",
                clause: "",
                kind: TIME,
                fallback: Fallback::Required,
            },
            Setting {
                name: "distribution",
                about: " Distribution of the random part.",
                clause: "",
                kind: Distribution::KIND,
                fallback: Fallback::Is("uniform"),
            },
        ],
    },
    build: |parameters, ()| {
        let distribution: Distribution = parameters.get("distribution")?;
        let spread = distribution.of(parameters.get("jitter")?);
        let base = Varying::new(parameters.get("delay")?);
        Ok(Box::new(Jitter::new(base, spread)))
    },
};

/// How specs name one whose random part was measured.
pub(super) static LISTED: Entry<Box<dyn Propagation>> = Entry {
    variant: Variant {
        name: "listed-jitter",
        about: " A delay with a random part for each packet, drawn from a list, for example of measured values.",
        parameters: &[
            DELAY,
            Setting {
                name: "delays",
                about: " The values of the random part, all equally likely. A value may be listed several times.",
                clause: "",
                kind: Kind::List(&TIME),
                fallback: Fallback::Required,
            },
        ],
    },
    build: |parameters, ()| {
        let delays: Vec<Nanos> = parameters.list("delays")?;
        if delays.is_empty() {
            return Err(Refusal::together(
                "`delays` is empty; one at least is needed",
            ));
        }
        let base = Varying::new(parameters.get("delay")?);
        Ok(Box::new(Jitter::new(base, Spread::Listed(delays))))
    },
};

/// A distribution that one number describes.
#[derive(Clone, Copy)]
pub(super) enum Distribution {
    /// Up to its number.
    Uniform,
    /// With its number as mean.
    Exponential,
}
anabranch_settings::spelled!(Distribution: Distribution::Uniform = "uniform", Distribution::Exponential = "exponential");

impl Distribution {
    /// The distribution with this number.
    pub fn of(self, amount: Nanos) -> Spread {
        match self {
            Distribution::Uniform => Spread::Uniform(amount),
            Distribution::Exponential => Spread::Exponential(amount),
        }
    }
}

/// How a random delay is distributed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spread {
    /// Uniform from 0 up to and without this.
    Uniform(Nanos),
    /// Exponential with this mean.
    Exponential(Nanos),
    /// One of these, each as likely as the others: what was measured.
    Listed(Vec<Nanos>),
}

impl Spread {
    fn draw(&self, rng: &mut Rng) -> Nanos {
        match self {
            Spread::Uniform(below) => rng.below(*below),
            Spread::Exponential(mean) => rng.exponential(*mean),
            Spread::Listed(delays) => {
                let place = rng.below(delays.len() as u64) as usize;
                delays.get(place).copied().unwrap_or(0)
            }
        }
    }
}

/// Another propagation, and for each packet a random delay on top of it.
pub struct Jitter {
    base: Box<dyn Propagation>,
    spread: Spread,
}

impl Jitter {
    /// `spread` on top of `base`.
    pub fn new(base: impl Propagation + 'static, spread: Spread) -> Self {
        Self {
            base: Box::new(base),
            spread,
        }
    }
}

impl std::fmt::Debug for Jitter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Jitter")
            .field("spread", &self.spread)
            .finish_non_exhaustive()
    }
}

impl Propagation for Jitter {
    fn delay(&mut self, at: Nanos, packet: &Packet, rng: &mut Rng) -> Nanos {
        let base = self.base.delay(at, packet, rng);
        base.saturating_add(self.spread.draw(rng))
    }
}
