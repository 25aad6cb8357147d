//! One delay for all packets.

use anabranch_settings::{Entry, Fallback, Setting, Variant};
use anabranch_transport::Nanos;

use super::{Propagation, TIME};
use crate::packet::Packet;
use crate::rng::Rng;

/// How specs name it.
pub(super) static ENTRY: Entry<Box<dyn Propagation>> = Entry {
    variant: Variant {
        name: "fixed",
        about: " The same delay for all packets.",
        parameters: &[Setting {
            name: "delay",
            about: " From the last bit sent to the last bit received.",
            clause: "",
            kind: TIME,
            fallback: Fallback::Required,
        }],
    },
    build: |parameters, ()| Ok(Box::new(Fixed(parameters.get("delay")?))),
};

/// Always the same delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fixed(pub Nanos);

impl Propagation for Fixed {
    fn delay(&mut self, _at: Nanos, _packet: &Packet, _rng: &mut Rng) -> Nanos {
        self.0
    }

    fn as_fixed(&self) -> Option<Nanos> {
        Some(self.0)
    }
}
