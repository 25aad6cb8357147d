//! Jitter: a delay with a random component for each packet.

use anabranch_settings::{Kind, KindEntry, KindError, SettingValue, idle_if, kind};
use anabranch_transport::Nanos;

use super::{DELAY, Propagation, TIME, TimeVarying, no_reordering};
use crate::packet::Packet;
use crate::rng::Rng;
use crate::step_function::StepFunction;

kind! {
    /// The parameters of [`Jitter`] with a one-parameter distribution.
    struct JitterConfig {
        delay: StepFunction<Nanos> as DELAY;
        /// Parameter of the random part: the maximum of `uniform`, the mean of `exponential`.
        jitter: Nanos, TIME;
        /// Distribution of the random part.
        distribution: Distribution = "uniform", Distribution::KIND;
    }
    idle {
        allow_reordering: |it, ()| no_reordering(it.delay.as_constant().is_some() && it.jitter == 0);
        distribution: |it, ()| idle_if(it.jitter == 0, "with a `jitter` of 0");
    }
    /// A delay with a random part for each packet (jitter).
    pub(super) static ENTRY: KindEntry<Box<dyn Propagation>> = "jitter", |config, ()| {
        let spread = config.distribution.of(config.jitter);
        Ok(Box::new(Jitter::new(TimeVarying::new(config.delay), spread)))
    };
}

kind! {
    /// The parameters of [`Jitter`] with measured values of the random component.
    struct ListedConfig {
        delay: StepFunction<Nanos> as DELAY;
        /// The values of the random part, all equally likely. A value may be listed several times.
        delays: Vec<Nanos>, Kind::List(&TIME);
    }
    idle {
        allow_reordering: |it, ()| {
            let same = it.delays.windows(2).all(|pair| pair[0] == pair[1]);
            no_reordering(it.delay.as_constant().is_some() && same)
        };
    }
    /// A delay with a random part for each packet, drawn from a list, for example of measured
    /// values.
    pub(super) static LISTED: KindEntry<Box<dyn Propagation>> = "listed-jitter", |config, ()| {
        if config.delays.is_empty() {
            return Err(KindError::together("`delays` is empty; one at least is needed"));
        }
        let spread = Spread::Listed(config.delays);
        Ok(Box::new(Jitter::new(TimeVarying::new(config.delay), spread)))
    };
}

/// A one-parameter distribution.
#[derive(Clone, Copy)]
pub(super) enum Distribution {
    /// Uniform from 0 to the parameter.
    Uniform,
    /// Exponential; the parameter is the mean.
    Exponential,
}
anabranch_settings::spelled!(Distribution: Distribution::Uniform = "uniform", Distribution::Exponential = "exponential");

impl Distribution {
    /// The distribution with the parameter `amount`, nanoseconds.
    pub fn of(self, amount: Nanos) -> Spread {
        match self {
            Distribution::Uniform => Spread::Uniform(amount),
            Distribution::Exponential => Spread::Exponential(amount),
        }
    }
}

/// Distribution of a random delay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spread {
    /// Uniform from 0 (inclusive) to this value (exclusive), nanoseconds.
    Uniform(Nanos),
    /// Exponential with this mean, nanoseconds.
    Exponential(Nanos),
    /// One of these values in nanoseconds, all equally likely, for example measured delays.
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

/// Propagation model that adds a random delay for each packet to another model.
pub struct Jitter {
    base: Box<dyn Propagation>,
    spread: Spread,
}

impl Jitter {
    /// Adds `spread` to the delay of `base`.
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

    fn least_delay(&self, from: Nanos, until: Nanos) -> Nanos {
        self.base.least_delay(from, until)
    }
}
