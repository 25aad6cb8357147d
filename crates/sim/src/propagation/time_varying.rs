//! Delay that depends only on time: constant, a schedule or trace, or an orbit in steps.

use anabranch_settings::{KindEntry, kind};
use anabranch_transport::Nanos;

use super::{ConstantDelay, DELAY, Propagation, no_reordering};
use crate::packet::Packet;
use crate::rng::Rng;
use crate::step_function::{Cursor, StepFunction};

kind! {
    /// The parameter of [`ConstantDelay`] and of [`Varying`].
    struct DeterministicConfig {
        delay: StepFunction<Nanos> as DELAY;
    }
    idle {
        allow_reordering: |it, ()| no_reordering(it.delay.as_constant().is_some());
    }
    /// The same delay for all packets: constant, or a function of time.
    pub(super) static ENTRY: KindEntry<Box<dyn Propagation>> = "deterministic", |config, ()| {
        Ok(match config.delay.as_constant() {
            Some(delay) => Box::new(ConstantDelay(delay)),
            None => Box::new(TimeVarying::new(config.delay)),
        })
    };
}

/// Propagation model whose delay depends on the departure of a packet's last bit.
#[derive(Clone, Debug)]
pub struct TimeVarying {
    fixed: Option<Nanos>,
    least: Nanos,
    delay: Cursor<Nanos>,
}

impl TimeVarying {
    /// Creates the model for a delay in nanoseconds as a step function of time.
    pub fn new(delay: StepFunction<Nanos>) -> Self {
        Self {
            fixed: delay.as_constant(),
            least: delay.values().min().unwrap_or(0),
            delay: Cursor::new(delay),
        }
    }
}

impl Propagation for TimeVarying {
    fn delay(&mut self, at: Nanos, _packet: &Packet, _rng: &mut Rng) -> Nanos {
        self.delay.at(at).0
    }

    fn as_fixed(&self) -> Option<Nanos> {
        self.fixed
    }

    fn least_delay(&self, _from: Nanos, _until: Nanos) -> Nanos {
        self.least
    }
}
