//! A transmitter whose discipline computes the duration of each packet, and decides which are lost:
//! first in, first out.

use anabranch_transport::Nanos;

use super::{EnqueueError, Fifo, Limit, Occupancy, QueuedPacket, Transmitter};
use crate::packet::DropReason;

#[derive(Debug)]
pub(super) struct TimedFifo {
    limit: Limit,
    waiting: Fifo,
    /// The packet in transmission: its end, and whether it is lost.
    serving: Option<(Nanos, bool, QueuedPacket)>,
}

impl TimedFifo {
    pub fn new(limit: Limit) -> Self {
        Self {
            limit,
            waiting: Fifo::new(),
            serving: None,
        }
    }

    pub fn enqueue(&mut self, packet: QueuedPacket) -> Result<(), EnqueueError> {
        if !self.limit.admits(self.occupancy(), packet.size()) {
            let reason = DropReason::QueueFull;
            return Err(EnqueueError { packet, reason });
        }
        self.waiting.push(packet);
        Ok(())
    }

    /// Ends the transmission that is complete by `now`: returns its packet, unless it is lost.
    pub fn finish(
        &mut self,
        now: Nanos,
        transmitter: &mut Transmitter<'_>,
    ) -> Option<QueuedPacket> {
        let (_, lost, packet) = self.serving.take_if(|(end, _, _)| *end <= now)?;
        if lost {
            transmitter.drop(packet, DropReason::Loss);
            return None;
        }
        Some(packet)
    }

    /// Size of the packet to send next, if the transmitter is free.
    pub fn next(&self) -> Option<usize> {
        match self.serving {
            None => self.waiting.front().map(QueuedPacket::size),
            Some(_) => None,
        }
    }

    /// Begins to send the next packet.
    pub fn start(&mut self, end: Nanos, lost: bool) {
        self.serving = self.waiting.pop().map(|packet| (end, lost, packet));
    }

    pub fn remove(&mut self) -> Option<QueuedPacket> {
        let serving = self.serving.take().map(|(_, _, packet)| packet);
        serving.or_else(|| self.waiting.pop())
    }

    pub fn occupancy(&self) -> Occupancy {
        let mut occupancy = self.waiting.occupancy();
        if let Some((_, _, packet)) = &self.serving {
            occupancy.add(packet.size());
        }
        occupancy
    }

    /// End of the current transmission.
    pub fn wake_up(&self) -> Option<Nanos> {
        self.serving.as_ref().map(|(end, _, _)| *end)
    }
}

/// Duration of `size` bytes at a rate in bits per second, to the nearest nanosecond.
pub(super) fn duration(size: usize, rate: f64) -> Nanos {
    (size as f64 * 8e9 / rate + 0.5) as Nanos
}
