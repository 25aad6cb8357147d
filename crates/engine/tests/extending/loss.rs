//! A loss model: a microwave oven that radiates for a part of each period, in which all packets are
//! lost.

use anabranch_settings::{Kind, KindEntry, KindError, kind};
use anabranch_sim::loss::{Loss, Traffic};
use anabranch_sim::{Packet, Rng};

/// A time above 0, nanoseconds.
const TIME: Kind = Kind::duration(1, 3_600_000_000_000);

kind! {
    /// Parameters of the oven. The loss model needs no other state.
    struct Oven {
        /// Time between the beginnings of two radiations: the period of the mains.
        period: u64 = "20 ms", TIME;
        /// Duration of the radiation in each period.
        on: u64, TIME;
    }
    /// All packets are lost while the oven radiates, from the beginning of each period on.
    pub static OVEN: KindEntry<Box<dyn Loss>, Traffic> = "oven", |oven, _| match oven.on <= oven.period {
        true => Ok(Box::new(oven)),
        false => Err(KindError::together("`on` is longer than `period`")),
    };
}

impl Loss for Oven {
    fn takes(&mut self, at: u64, _packet: &Packet, _rng: &mut Rng) -> bool {
        at % self.period < self.on
    }
}
