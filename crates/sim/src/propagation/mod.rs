//! Propagation: how long a packet is in the air.

mod fixed;
mod jitter;
mod varying;

use anabranch_transport::Nanos;

pub use fixed::Fixed;
pub use jitter::{Jitter, Spread};
pub use varying::Varying;

use crate::packet::Packet;
use crate::rng::Rng;

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
