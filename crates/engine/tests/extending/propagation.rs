//! A propagation: a satellite that approaches and recedes at constant speed.

use anabranch_settings::{Kind, KindEntry, KindError, kind};
use anabranch_sim::{Packet, Propagation, Rng};

/// A time above 0, nanoseconds.
const TIME: Kind = Kind::duration(1, 86_400_000_000_000);

kind! {
    /// A pass of a satellite.
    struct Pass {
        /// The shortest delay.
        near: u64, TIME;
        /// The longest delay.
        far: u64, TIME;
        /// Time between two longest delays.
        period: u64, TIME;
    }
    /// A delay that falls from `far` to `near` in the first half of each period and rises again in
    /// the second.
    pub static PASS: KindEntry<Box<dyn Propagation>> = "pass", |pass, ()| match pass.near <= pass.far {
        true => Ok(Box::new(pass)),
        false => Err(KindError::together("`near` is longer than `far`")),
    };
}

impl Propagation for Pass {
    fn delay(&mut self, at: u64, _packet: &Packet, _rng: &mut Rng) -> u64 {
        // Integer arithmetic gives the same result on every machine.
        let phase = u128::from(at % self.period);
        let period = u128::from(self.period);
        let away = (2 * phase).abs_diff(period);
        self.near + (u128::from(self.far - self.near) * away / period) as u64
    }
}
