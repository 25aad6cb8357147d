//! The loss model without losses, for example as the baseline of a sweep over loss models.

use anabranch_settings::{KindEntry, idle_if, kind};
use anabranch_transport::Nanos;

use super::{Loss, Traffic};
use crate::packet::Packet;
use crate::rng::Rng;

kind! {
    /// Loss model that drops no packet.
    #[derive(Clone, Copy, Debug)]
    pub struct NoLoss {}
    idle {
        position: |_, _| idle_if(true, "with `model = \"none\"`");
    }
    /// No packet is lost.
    pub(super) static ENTRY: KindEntry<Box<dyn Loss>, Traffic> = "none", |none, _| Ok(Box::new(none));
}

impl Loss for NoLoss {
    #[inline]
    fn takes(&mut self, _at: Nanos, _packet: &Packet, _rng: &mut Rng) -> bool {
        false
    }
}
