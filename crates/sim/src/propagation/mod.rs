//! Propagation: how long a packet is in the air.

mod fixed;
mod jitter;
mod satellites;
mod time_varying;

use anabranch_settings::{Entry, Kind, Registry, Setting, idle_if};
use anabranch_transport::Nanos;

pub use fixed::Fixed;
pub use jitter::{Jitter, Spread};
pub use satellites::{Satellites, catalogue};
pub use time_varying::Varying;

use crate::packet::Packet;
use crate::rng::Rng;

/// Every propagation: one line for each, whose declaration stands beside its code.
pub const KINDS: &[&Entry<Box<dyn Propagation>>] = &[
    &time_varying::ENTRY,
    &jitter::ENTRY,
    &jitter::LISTED,
    &satellites::ENTRY,
];

/// The registry of [`KINDS`], to which a program may add its own.
pub fn kinds() -> Registry<Box<dyn Propagation>> {
    Registry::new(KINDS)
}

/// A delay, or a time at which it changes.
const TIME: Kind = Kind::duration(0, Nanos::MAX);

/// The parameter that propagations share.
const DELAY: Setting = Setting::new(
    "delay",
    " Time from the last bit sent to the last bit received. If it changes over time: the value when the last bit is sent.",
    Kind::OverTime(&TIME),
);

/// Why `overtaking` has no effect, if it has none.
fn no_overtaking(is_same: bool) -> Option<String> {
    idle_if(is_same, "where the delay is the same for all packets")
}

/// The way from the last bit sent to the last bit received. A direction asks once for every packet that the air does not
/// take, in the order of time.
///
/// Packets overtake each other only where [`DirectionConfig::overtaking`](crate::DirectionConfig::overtaking) lets them.
pub trait Propagation {
    /// The delay of `packet`, whose last bit leaves at `at`. `rng` is the direction's stream `link <link> <direction>
    /// propagation`.
    fn delay(&mut self, at: Nanos, packet: &Packet, rng: &mut Rng) -> Nanos;

    /// The delay, if it is the same for every packet and at all times; it is then not asked for again.
    fn as_fixed(&self) -> Option<Nanos> {
        None
    }
}
