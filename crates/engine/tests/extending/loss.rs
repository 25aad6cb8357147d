//! A loss model: an oven that radiates for a part of each period, in which every packet is lost.

use anabranch_settings::{Entry, Fallback, Kind, Refusal, Setting, Variant};
use anabranch_sim::loss::{Loss, Traffic};
use anabranch_sim::{Packet, Rng};

/// A time above 0, nanoseconds.
const TIME: Kind = Kind::Duration {
    least: 1,
    most: 3_600_000_000_000,
};

/// How specs name it.
pub static OVEN: Entry<Box<dyn Loss>, Traffic> = Entry {
    variant: Variant {
        name: "oven",
        about: " All packets are lost while an oven radiates, which it does at the begin of each period.",
        parameters: &[
            Setting {
                name: "period",
                about: " From one begin to the next: that of the mains.",
                clause: "",
                kind: TIME,
                fallback: Fallback::Is("20 ms"),
            },
            Setting {
                name: "on",
                about: " For how long it radiates.",
                clause: "",
                kind: TIME,
                fallback: Fallback::Required,
            },
        ],
    },
    build: |parameters, _| {
        let (period, on) = (parameters.get("period")?, parameters.get("on")?);
        if on > period {
            return Err(Refusal::together("`on` is longer than `period`"));
        }
        Ok(Box::new(Oven { period, on }))
    },
};

struct Oven {
    period: u64,
    on: u64,
}

impl Loss for Oven {
    fn takes(&mut self, at: u64, _packet: &Packet, _rng: &mut Rng) -> bool {
        at % self.period < self.on
    }
}
