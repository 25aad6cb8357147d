//! A model that loses nothing: what a sweep over loss models begins with.

use anabranch_settings::{Entry, Variant};
use anabranch_transport::Nanos;

use super::{Loss, Traffic};
use crate::packet::Packet;
use crate::rng::Rng;

/// How specs name it.
pub(super) static ENTRY: Entry<Box<dyn Loss>, Traffic> = Entry {
    variant: Variant {
        name: "none",
        about: " No packet is lost.",
        parameters: &[],
    },
    build: |_, _| Ok(Box::new(Nothing)),
};

/// No losses.
#[derive(Clone, Copy, Debug)]
pub struct Nothing;

impl Loss for Nothing {
    #[inline]
    fn takes(&mut self, _at: Nanos, _packet: &Packet, _rng: &mut Rng) -> bool {
        false
    }
}
