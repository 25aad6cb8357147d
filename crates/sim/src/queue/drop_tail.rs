//! First come, first served, up to a limit; who finds it reached is dropped.

use anabranch_transport::Nanos;

use super::{Occupancy, Queue};
use crate::error::BuildError;
use crate::rng::Rng;

/// How much a queue holds, the packet in transmission included.
///
/// ns-2 keeps the packet in transmission outside of its queue and refuses a packet when the number waiting, plus one,
/// reaches the limit. For limits of two packets and more that is the same rule as this one: at most `limit` packets
/// between the first bit that waits and the last bit that leaves. (At a limit of 1, ns-2 drops everything; here a
/// packet passes when the link is idle.) A limit in bytes counts the packet in transmission too, where ns-2 does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// So many packets.
    Packets(usize),
    /// So many bytes on the wire.
    Bytes(u64),
    /// Whatever comes.
    Unlimited,
}

/// The drop-tail queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropTail {
    limit: Limit,
}

impl DropTail {
    /// A queue up to `limit`.
    ///
    /// # Errors
    /// [`BuildError::EmptyQueue`] for a limit of 0.
    pub fn new(limit: Limit) -> Result<Self, BuildError> {
        match limit {
            Limit::Packets(0) | Limit::Bytes(0) => Err(BuildError::EmptyQueue),
            limit => Ok(Self { limit }),
        }
    }

    /// A queue that drops nothing.
    pub const fn unlimited() -> Self {
        Self {
            limit: Limit::Unlimited,
        }
    }
}

impl Queue for DropTail {
    #[inline]
    fn admits(&mut self, _now: Nanos, occupancy: Occupancy, size: usize, _rng: &mut Rng) -> bool {
        match self.limit {
            Limit::Packets(limit) => occupancy.packets < limit,
            Limit::Bytes(limit) => occupancy.bytes + size as u64 <= limit,
            Limit::Unlimited => true,
        }
    }
}
