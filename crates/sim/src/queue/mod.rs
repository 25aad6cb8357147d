//! Queues before a transmitter: who may wait.
//!
//! A link sends in the order of admission, so the moment at which a packet leaves is known when it is admitted, and no
//! event is needed for it. A queue here is therefore the rule of admission; disciplines that change the order or drop
//! what already waits need a kind of link of their own (see [`crate::link`]).

mod drop_tail;

use anabranch_transport::Nanos;

pub use drop_tail::{DropTail, Limit};

use crate::rng::Rng;

/// What is in a queue, the packet in transmission included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// Packets.
    pub packets: usize,
    /// Their bytes on the wire.
    pub bytes: u64,
}

/// A rule of admission.
pub trait Queue {
    /// Whether a packet of `size` bytes on the wire that comes at `now` may join a queue that holds `occupancy`.
    fn admits(&mut self, now: Nanos, occupancy: Occupancy, size: usize, rng: &mut Rng) -> bool;
}
