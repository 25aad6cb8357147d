//! A loss model: an oven that radiates for a part of each period, in which every packet is lost.

use anabranch_settings::{Kind, KindEntry, Refusal, kind};
use anabranch_sim::loss::{Loss, Traffic};
use anabranch_sim::{Packet, Rng};

/// A time above 0, nanoseconds.
const TIME: Kind = Kind::duration(1, 3_600_000_000_000);

kind! {
    /// An oven, which is its own loss model: it keeps no state.
    struct Oven {
        /// From one begin to the next: that of the mains.
        period: u64 = "20 ms", TIME;
        /// For how long it radiates.
        on: u64, TIME;
    }
    /// All packets are lost while an oven radiates, which it does at the begin of each period.
    pub static OVEN: KindEntry<Box<dyn Loss>, Traffic> = "oven", |oven, _| match oven.on <= oven.period {
        true => Ok(Box::new(oven)),
        false => Err(Refusal::together("`on` is longer than `period`")),
    };
}

impl Loss for Oven {
    fn takes(&mut self, at: u64, _packet: &Packet, _rng: &mut Rng) -> bool {
        at % self.period < self.on
    }
}
