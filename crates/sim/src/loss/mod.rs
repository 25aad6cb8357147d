//! Losses: which packets a link takes and never delivers.

mod bernoulli;
mod gilbert_elliott;
mod list;
mod none;
mod periodic;
mod rain_fade;
mod schedule;
mod traffic;

use anabranch_transport::Nanos;

pub use bernoulli::Bernoulli;
pub use gilbert_elliott::{GilbertElliott, GilbertElliottConfig};
pub use list::{Ordinals, SegmentLoss, Segments};
pub use none::NoLoss;
pub use periodic::Periodic;
pub use rain_fade::RainFade;
pub use schedule::Schedule;
pub use traffic::{Flows, Traffic};

use anabranch_settings::{Entry, Kind, Registry};

use crate::packet::Packet;
use crate::rng::Rng;

/// A probability.
const CHANCE: Kind = Kind::number(0.0, 1.0);

/// Every loss model: one line for each, whose declaration stands beside its code.
pub const KINDS: &[&Entry<Box<dyn Loss>, Traffic>] = &[
    &bernoulli::ENTRY,
    &gilbert_elliott::ENTRY,
    &list::ENTRY,
    &schedule::ENTRY,
    &list::ORDINALS,
    &none::ENTRY,
    &periodic::ENTRY,
    &rain_fade::ENTRY,
];

/// The registry of [`KINDS`], to which a program may add its own.
pub fn kinds() -> Registry<Box<dyn Loss>, Traffic> {
    Registry::new(KINDS)
}

/// A loss model, asked once for every packet that comes to its place, in order.
pub trait Loss {
    /// Whether `packet`, which is at the model's place at `at`, is lost. `rng` is the model's own stream.
    fn takes(&mut self, at: Nanos, packet: &Packet, rng: &mut Rng) -> bool;
}

/// Where on a link a loss model stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// Before the queue: a lost packet takes neither room nor time of the transmitter (ns-2's `errormodule`).
    #[default]
    BeforeQueue,
    /// In the air: a lost packet waited and was sent like any other.
    AfterQueue,
}
