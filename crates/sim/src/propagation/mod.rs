//! Propagation models: the delay between sending and arrival of a packet's last bit.

mod fixed;
mod jitter;
mod satellites;
mod time_varying;

use anabranch_settings::{Kind, KindEntry, Registry, Setting, idle_if};
use anabranch_transport::Nanos;

pub use fixed::ConstantDelay;
pub use jitter::{Jitter, Spread};
pub use satellites::{SatellitePropagation, catalogue};
pub use time_varying::TimeVarying;

use crate::packet::Packet;
use crate::rng::Rng;

/// All propagation models. Each entry refers to the declaration in the module of the model.
pub const KINDS: &[&KindEntry<Box<dyn Propagation>>] = &[
    &time_varying::ENTRY,
    &jitter::ENTRY,
    &jitter::LISTED,
    &satellites::ENTRY,
];

/// The registry of [`KINDS`], to which a program may add its own models.
pub fn kinds() -> Registry<Box<dyn Propagation>> {
    Registry::new(KINDS)
}

/// Value kind of a delay, or of the time of a change.
const TIME: Kind = Kind::duration(0, Nanos::MAX);

/// The parameter that the propagation models share.
const DELAY: Setting = Setting::new(
    "delay",
    " Time from the last bit sent to the last bit received. If it changes over time: the value when the last bit is sent.",
    Kind::StepFunction(&TIME),
);

/// The reason why `allow_reordering` has no effect, if all packets have the same delay.
fn no_reordering(is_same: bool) -> Option<String> {
    idle_if(is_same, "where the delay is the same for all packets")
}

/// Propagation model: the delay from the departure of a packet's last bit to its arrival. A
/// direction calls it in the order of time, once for every packet that is not lost in the channel.
///
/// Packets can overtake each other only if
/// [`DirectionConfig::allow_reordering`](crate::DirectionConfig::allow_reordering) allows it.
pub trait Propagation {
    /// The delay of `packet`, whose last bit leaves at `at`. `rng` is the stream of the direction,
    /// `link <link> <direction> propagation`.
    fn delay(&mut self, at: Nanos, packet: &Packet, rng: &mut Rng) -> Nanos;

    /// The delay in nanoseconds, if it is the same for every packet and at all times.
    /// [`Self::delay`] is not called in this case.
    fn as_fixed(&self) -> Option<Nanos> {
        None
    }

    /// Lower bound of the delays, nanoseconds, of packets whose last bit leaves between `from` and
    /// `until`. Threads that share a world run for this time without waiting for packets of the
    /// direction. A world cannot be divided at a direction with the bound 0, which is the default
    /// unless the delay is fixed.
    fn least_delay(&self, from: Nanos, until: Nanos) -> Nanos {
        let _ = (from, until);
        self.as_fixed().unwrap_or(0)
    }
}
