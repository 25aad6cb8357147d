//! A constant delay for all packets.

use anabranch_transport::Nanos;

use super::Propagation;
use crate::packet::Packet;
use crate::rng::Rng;

/// A constant delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConstantDelay(pub Nanos);

impl Propagation for ConstantDelay {
    fn delay(&mut self, _at: Nanos, _packet: &Packet, _rng: &mut Rng) -> Nanos {
        self.0
    }

    fn as_fixed(&self) -> Option<Nanos> {
        Some(self.0)
    }
}
