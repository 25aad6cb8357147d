//! First come, first served, up to a limit; who finds it reached is dropped.

use std::collections::VecDeque;

use anabranch_settings::{Entry, kind};
use anabranch_transport::Nanos;

use super::{LIMIT, Occupancy, QueueDiscipline, Queued, Refused, Transmitter};
use crate::error::BuildError;
use crate::packet::DropReason;

kind! {
    /// The parameter of [`DropTail`].
    struct DropTailConfig {
        limit: Limit as LIMIT;
    }
    /// First in, first out. A packet that arrives at a full queue is dropped.
    pub(super) static ENTRY: Entry<Box<dyn QueueDiscipline>> =
        "drop-tail", |config, ()| Ok(Box::new(DropTail::new(config.limit)?));
}

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

impl Limit {
    /// The limit, if anything fits into it.
    ///
    /// # Errors
    /// [`BuildError::EmptyQueue`] for a limit of 0.
    pub fn checked(self) -> Result<Self, BuildError> {
        match self {
            Limit::Packets(0) | Limit::Bytes(0) => Err(BuildError::EmptyQueue),
            limit => Ok(limit),
        }
    }

    /// Whether a packet of `size` bytes fits beside `occupancy`, which counts the packet in transmission.
    #[inline]
    pub fn admits(self, occupancy: Occupancy, size: usize) -> bool {
        match self {
            Limit::Packets(limit) => occupancy.packets < limit,
            Limit::Bytes(limit) => occupancy.bytes + size as u64 <= limit,
            Limit::Unlimited => true,
        }
    }
}

/// Packets in the order of their coming, with their bytes: what most disciplines keep.
#[derive(Debug, Default)]
pub struct Fifo {
    packets: VecDeque<Queued>,
    occupancy: Occupancy,
}

impl Fifo {
    /// Nothing waits.
    pub fn new() -> Self {
        Self::default()
    }

    /// A packet joins at the end.
    pub fn push(&mut self, packet: Queued) {
        self.occupancy.add(packet.size());
        self.packets.push_back(packet);
    }

    /// The packet that has waited longest leaves.
    pub fn pop(&mut self) -> Option<Queued> {
        let packet = self.packets.pop_front()?;
        self.occupancy.remove(packet.size());
        Some(packet)
    }

    /// The packet that has waited longest.
    pub fn front(&self) -> Option<&Queued> {
        self.packets.front()
    }

    /// What waits.
    pub fn occupancy(&self) -> Occupancy {
        self.occupancy
    }

    /// What waits and what is being sent.
    pub fn with(&self, in_service: Occupancy) -> Occupancy {
        Occupancy {
            packets: self.occupancy.packets + in_service.packets,
            bytes: self.occupancy.bytes + in_service.bytes,
        }
    }
}

/// The drop-tail queue.
#[derive(Debug)]
pub struct DropTail {
    limit: Limit,
    waiting: Fifo,
}

impl DropTail {
    /// A queue up to `limit`.
    ///
    /// # Errors
    /// [`BuildError::EmptyQueue`] for a limit of 0.
    pub fn new(limit: Limit) -> Result<Self, BuildError> {
        Ok(Self {
            limit: limit.checked()?,
            waiting: Fifo::new(),
        })
    }

    /// A queue that drops nothing.
    pub fn unlimited() -> Self {
        Self {
            limit: Limit::Unlimited,
            waiting: Fifo::new(),
        }
    }
}

impl QueueDiscipline for DropTail {
    fn enqueue(
        &mut self,
        _now: Nanos,
        packet: Queued,
        transmitter: &mut Transmitter<'_>,
    ) -> Result<(), Refused> {
        let occupancy = self.waiting.with(transmitter.in_service);
        if !self.limit.admits(occupancy, packet.size()) {
            let reason = DropReason::QueueFull;
            return Err(Refused { packet, reason });
        }
        self.waiting.push(packet);
        Ok(())
    }

    fn dequeue(&mut self, _now: Nanos, _: &mut Transmitter<'_>) -> Option<Queued> {
        self.waiting.pop()
    }

    fn remove(&mut self) -> Option<Queued> {
        self.waiting.pop()
    }

    fn occupancy(&self) -> Occupancy {
        self.waiting.occupancy()
    }

    fn as_drop_tail(&self) -> Option<Limit> {
        Some(self.limit)
    }
}
