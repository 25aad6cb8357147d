//! Loss models, which decide the packets that a link loses.

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

use anabranch_settings::{Kind, KindEntry, Registry};

use crate::packet::Packet;
use crate::rng::Rng;

/// Value kind of a probability: a number from 0 to 1.
const CHANCE: Kind = Kind::number(0.0, 1.0);

/// All loss models. Each entry refers to the declaration in the module of the model.
pub const KINDS: &[&KindEntry<Box<dyn Loss>, Traffic>] = &[
    &bernoulli::ENTRY,
    &gilbert_elliott::ENTRY,
    &list::ENTRY,
    &schedule::ENTRY,
    &list::ORDINALS,
    &none::ENTRY,
    &periodic::ENTRY,
    &rain_fade::ENTRY,
];

/// The registry of [`KINDS`], to which a program may add its own models.
pub fn kinds() -> Registry<Box<dyn Loss>, Traffic> {
    Registry::new(KINDS)
}

/// A loss model. It is called once for every packet that reaches its position, in order.
pub trait Loss {
    /// Whether the model drops `packet`, which reaches the model's position at `at`. `rng` is the
    /// random stream of this model.
    fn takes(&mut self, at: Nanos, packet: &Packet, rng: &mut Rng) -> bool;
}

/// Position of a loss model on a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossPosition {
    /// Before the queue: a lost packet uses neither buffer space nor transmission time (ns-2's
    /// `errormodule`).
    #[default]
    BeforeQueue,
    /// After the queue: a lost packet was queued and transmitted like any other.
    AfterQueue,
}
