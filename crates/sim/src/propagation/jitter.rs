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
        about: " A delay with a random part for each packet.",
        parameters: &[
            DELAY,
            Setting {
                name: "jitter",
                about: " The random part: its upper end where it is uniform from 0 on, its mean where it is exponential.",
                clause: "",
                kind: TIME,
                fallback: Fallback::Nothing,
            },
            Setting {
                name: "distribution",
                about: " Of the random part; `listed`: one of `delays`, each as likely as the others.",
                clause: "",
                kind: Distribution::KIND,
                fallback: Fallback::Is("uniform"),
            },
            Setting {
                name: "delays",
                about: " What the random part may be where it is `listed`, such as what was measured; a value may stand several times.",
                clause: "",
                kind: Kind::List(&TIME),
                fallback: Fallback::Nothing,
            },
        ],
    },
    build: |parameters, ()| {
        let amount: Option<Nanos> = parameters.optional("jitter")?;
        let delays: Vec<Nanos> = parameters.list("delays")?;
        let spread = match (parameters.get("distribution")?, amount) {
            (Distribution::Uniform, Some(amount)) if delays.is_empty() => Spread::Uniform(amount),
            (Distribution::Exponential, Some(amount)) if delays.is_empty() => {
                Spread::Exponential(amount)
            }
            (Distribution::Listed, None) if !delays.is_empty() => Spread::Listed(delays),
            (Distribution::Listed, _) => {
                let message =
                    "`distribution = \"listed\"` takes `delays`, one at least, and no `jitter`";
                return Err(Refusal::together(message));
            }
            _ => {
                let message =
                    "a jitter takes `jitter`, and `delays` only with `distribution = \"listed\"`";
                return Err(Refusal::together(message));
            }
        };
        let base = Varying::new(parameters.get("delay")?);
        Ok(Box::new(Jitter::new(base, spread)))
    },
};

/// A distribution that one number describes.
#[derive(Clone, Copy)]
enum Distribution {
    Uniform,
    Exponential,
    Listed,
}
anabranch_settings::spelled!(Distribution: Distribution::Uniform = "uniform", Distribution::Exponential = "exponential",
    Distribution::Listed = "listed");

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
