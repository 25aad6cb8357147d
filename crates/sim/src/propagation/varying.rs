//! A delay that changes as time goes by: a schedule, a trace, an orbit written down as steps.

use anabranch_settings::{Entry, Fallback, Kind, Refusal, Setting, Variant};
use anabranch_transport::Nanos;

use super::{Propagation, TIME};
use crate::over_time::{self, Cursor, OverTime};
use crate::packet::Packet;
use crate::rng::Rng;

/// How specs name it.
pub(super) static ENTRY: Entry<Box<dyn Propagation>> = Entry {
    variant: Variant {
        name: "steps",
        about: " A delay that changes at given times.",
        parameters: &[
            Setting {
                name: "delay",
                about: " Before the first of the times.",
                clause: "",
                kind: TIME,
                fallback: Fallback::Required,
            },
            Setting {
                name: "times",
                about: " From when on each of the delays holds, in the order of time.",
                clause: "",
                kind: Kind::List(&TIME),
                fallback: Fallback::Required,
            },
            Setting {
                name: "delays",
                about: " One for each time.",
                clause: "",
                kind: Kind::List(&TIME),
                fallback: Fallback::Required,
            },
            Setting {
                name: "period",
                about: " The same again each time that so much has passed; left out: once.",
                clause: "",
                kind: TIME,
                fallback: Fallback::Nothing,
            },
        ],
    },
    build: |parameters, ()| {
        let steps = over_time::pairs(parameters.list("times")?, parameters.list("delays")?);
        let steps = steps.map_err(Refusal::together)?;
        let mut delay = OverTime::steps(parameters.get("delay")?, steps);
        if let Some(period) = parameters.optional("period")? {
            delay = delay.and_then(|delay| delay.repeating(period));
        }
        Ok(Box::new(Varying::new(delay.map_err(Refusal::together)?)))
    },
};

/// The delay of the moment at which a packet's last bit leaves.
#[derive(Clone, Debug)]
pub struct Varying {
    fixed: Option<Nanos>,
    delay: Cursor<Nanos>,
}

impl Varying {
    /// The delay over time.
    pub fn new(delay: OverTime<Nanos>) -> Self {
        Self {
            fixed: delay.as_constant(),
            delay: Cursor::new(delay),
        }
    }
}

impl Propagation for Varying {
    fn delay(&mut self, at: Nanos, _packet: &Packet, _rng: &mut Rng) -> Nanos {
        self.delay.at(at).0
    }

    fn as_fixed(&self) -> Option<Nanos> {
        self.fixed
    }
}
