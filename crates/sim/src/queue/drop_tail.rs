//! Drop-tail queue: first in, first out, with a limit. A packet that arrives at a full queue is
//! dropped.

use std::collections::VecDeque;

use anabranch_settings::{KindEntry, kind};
use anabranch_transport::Nanos;

use super::{
    EnqueueError, LIMIT, Occupancy, QueueDiscipline, QueueLimit, QueuedPacket, TransmitterView,
};
use crate::error::BuildError;
use crate::packet::DropReason;

kind! {
    /// The parameter of [`DropTail`].
    struct DropTailConfig {
        limit: QueueLimit as LIMIT;
    }
    /// Drop-tail: first in, first out. A packet that arrives at a full queue is dropped.
    pub(super) static ENTRY: KindEntry<Box<dyn QueueDiscipline>> =
        "drop-tail", |config, ()| Ok(Box::new(DropTail::new(config.limit)?));
}

/// Queue of packets in the order of arrival, with their total size; the storage of most
/// disciplines.
#[derive(Debug, Default)]
pub struct Fifo {
    packets: VecDeque<QueuedPacket>,
    occupancy: Occupancy,
}

impl Fifo {
    /// Creates an empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a packet.
    pub fn push(&mut self, packet: QueuedPacket) {
        self.occupancy.add(packet.size());
        self.packets.push_back(packet);
    }

    /// Removes the oldest packet.
    pub fn pop(&mut self) -> Option<QueuedPacket> {
        let packet = self.packets.pop_front()?;
        self.occupancy.remove(packet.size());
        Some(packet)
    }

    /// The oldest packet.
    pub fn front(&self) -> Option<&QueuedPacket> {
        self.packets.front()
    }

    /// Number and bytes of the queued packets.
    pub fn occupancy(&self) -> Occupancy {
        self.occupancy
    }

    /// Number and bytes of the queued packets and of `in_service`, the packet in transmission.
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
    limit: QueueLimit,
    waiting: Fifo,
}

impl DropTail {
    /// Creates an empty queue with the capacity `limit`.
    ///
    /// # Errors
    /// [`BuildError::EmptyQueue`] for a limit of 0.
    pub fn new(limit: QueueLimit) -> Result<Self, BuildError> {
        Ok(Self {
            limit: limit.checked()?,
            waiting: Fifo::new(),
        })
    }

    /// Creates an empty queue without a limit.
    pub fn unlimited() -> Self {
        Self {
            limit: QueueLimit::Unlimited,
            waiting: Fifo::new(),
        }
    }
}

impl QueueDiscipline for DropTail {
    fn enqueue(
        &mut self,
        _now: Nanos,
        packet: QueuedPacket,
        transmitter: &mut TransmitterView<'_>,
    ) -> Result<(), EnqueueError> {
        let occupancy = self.waiting.with(transmitter.in_service);
        if !self.limit.admits(occupancy, packet.size()) {
            let reason = DropReason::QueueFull;
            return Err(EnqueueError { packet, reason });
        }
        self.waiting.push(packet);
        Ok(())
    }

    fn dequeue(&mut self, _now: Nanos, _: &mut TransmitterView<'_>) -> Option<QueuedPacket> {
        self.waiting.pop()
    }

    fn remove(&mut self) -> Option<QueuedPacket> {
        self.waiting.pop()
    }

    fn occupancy(&self) -> Occupancy {
        self.waiting.occupancy()
    }

    fn as_drop_tail(&self) -> Option<QueueLimit> {
        Some(self.limit)
    }
}
