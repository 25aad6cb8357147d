//! A propagation: a satellite that comes near and goes away again, at a steady pace.

use anabranch_settings::{Entry, Fallback, Kind, Refusal, Setting, Variant};
use anabranch_sim::{Packet, Propagation, Rng};

/// A time above 0, nanoseconds.
const TIME: Kind = Kind::Duration {
    least: 1,
    most: 86_400_000_000_000,
};

const fn time(name: &'static str, about: &'static str) -> Setting {
    Setting {
        name,
        about,
        clause: "",
        kind: TIME,
        fallback: Fallback::Required,
    }
}

/// How specs name it.
pub static PASS: Entry<Box<dyn Propagation>> = Entry {
    variant: Variant {
        name: "pass",
        about: " A delay that falls from `far` to `near` in the first half of each period and rises again in the second.",
        parameters: &[
            time("near", " The shortest delay."),
            time("far", " The longest."),
            time("period", " From one longest to the next."),
        ],
    },
    build: |parameters, ()| {
        let [near, far, period] = ["near", "far", "period"].map(|name| parameters.get(name));
        let (near, far, period) = (near?, far?, period?);
        if near > far {
            return Err(Refusal::together("`near` is longer than `far`"));
        }
        Ok(Box::new(Pass { near, far, period }))
    },
};

struct Pass {
    near: u64,
    far: u64,
    period: u64,
}

impl Propagation for Pass {
    fn delay(&mut self, at: u64, _packet: &Packet, _rng: &mut Rng) -> u64 {
        // Whole numbers: the same on every machine.
        let phase = u128::from(at % self.period);
        let period = u128::from(self.period);
        let away = (2 * phase).abs_diff(period);
        self.near + (u128::from(self.far - self.near) * away / period) as u64
    }
}
