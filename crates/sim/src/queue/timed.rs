//! A transmitter whose discipline computes the duration of each packet, and decides which are lost:
//! first in, first out.

use anabranch_transport::Nanos;

use super::{EnqueueError, Fifo, Limit, Occupancy, QueuedPacket, Transmitter};
use crate::error::BuildError;
use crate::packet::DropReason;
use crate::step_function::StepFunction;

#[derive(Debug)]
pub(crate) struct TimedFifo {
    limit: Limit,
    waiting: Fifo,
    /// The packet in transmission: its end, and whether it is lost.
    serving: Option<(Nanos, bool, QueuedPacket)>,
    /// Duration of the current transmission, without a pause before it.
    lasts: Nanos,
    /// Duration of the complete transmissions.
    busy: Nanos,
}

impl TimedFifo {
    pub fn new(limit: Limit) -> Self {
        Self {
            limit,
            waiting: Fifo::new(),
            serving: None,
            lasts: 0,
            busy: 0,
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
        self.busy += self.lasts;
        if lost {
            transmitter.drop(packet, DropReason::Loss);
            return None;
        }
        Some(packet)
    }

    /// The packet to send next, if the transmitter is free.
    pub fn front(&self) -> Option<&QueuedPacket> {
        match self.serving {
            None => self.waiting.front(),
            Some(_) => None,
        }
    }

    /// Size of the packet to send next, if the transmitter is free.
    pub fn next(&self) -> Option<usize> {
        self.front().map(QueuedPacket::size)
    }

    /// Begins at `begin` to send the next packet.
    pub fn start(&mut self, begin: Nanos, lasts: Nanos, lost: bool) {
        let end = begin.saturating_add(lasts);
        self.lasts = lasts;
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

    /// Duration of the transmissions that are complete by `now`.
    pub fn busy(&self, now: Nanos) -> Nanos {
        match &self.serving {
            Some((end, _, _)) if *end <= now => self.busy + self.lasts,
            _ => self.busy,
        }
    }

    /// End of the current transmission.
    pub fn wake_up(&self) -> Option<Nanos> {
        self.serving.as_ref().map(|(end, _, _)| *end)
    }
}

/// The constant rate of a link, for a discipline that takes it.
///
/// # Errors
/// [`BuildError::Parameters`] with the message `otherwise` if there is none.
pub(crate) fn take_constant(
    rate: &mut Option<StepFunction<u64>>,
    otherwise: &'static str,
) -> Result<u64, BuildError> {
    let constant = rate.take().and_then(|rate| rate.as_constant());
    constant.ok_or(BuildError::Parameters(otherwise))
}

/// Duration of `size` bytes at a rate in bits per second, to the nearest nanosecond.
pub(crate) fn duration(size: usize, rate: f64) -> Nanos {
    (size as f64 * 8e9 / rate + 0.5) as Nanos
}
