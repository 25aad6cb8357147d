//! First-in-first-out queue whose discipline computes the rate of each packet, and decides which
//! packets are lost.

use anabranch_transport::Nanos;

use super::{
    EnqueueError, Fifo, Occupancy, QueueDiscipline, QueueLimit, QueuedPacket, TransmitterView,
};
use crate::error::BuildError;
use crate::packet::DropReason;
use crate::rng::Rng;
use crate::step_function::StepFunction;

/// Transmission of one packet: its start, rate and outcome.
#[derive(Clone, Copy, Debug)]
pub struct Transmission {
    /// Departure of the packet's first bit, nanoseconds.
    pub begin: Nanos,
    /// Rate of the transmission, bits per second.
    pub rate: f64,
    /// Whether the packet is lost.
    pub lost: bool,
}

/// Computes the transmissions of packets in a [`TimedQueue`].
pub trait PacketTiming {
    /// Error message for a link whose rate is not constant.
    const NOT_CONSTANT: &'static str;

    /// Computes the transmission of the next packet. The transmitter is free at `now`; `rate` is
    /// that of the link, bits per second.
    fn next(&mut self, now: Nanos, packet: &QueuedPacket, rate: f64, rng: &mut Rng)
    -> Transmission;
}

/// A drop-tail queue whose packets are sent at the times and rates that a [`PacketTiming`]
/// computes.
#[derive(Debug)]
pub struct TimedQueue<T> {
    timing: T,
    limit: QueueLimit,
    waiting: Fifo,
    /// Rate of the link, bits per second.
    rate: f64,
    /// The packet in transmission: its end time, and whether it is lost.
    serving: Option<(Nanos, bool, QueuedPacket)>,
    /// Duration of the current transmission in nanoseconds, excluding a pause before its first bit.
    lasts: Nanos,
    /// Total duration of the complete transmissions, nanoseconds.
    busy: Nanos,
}

impl<T> TimedQueue<T> {
    pub(crate) fn with(limit: QueueLimit, timing: T) -> Self {
        Self {
            timing,
            limit,
            waiting: Fifo::new(),
            rate: 0.0,
            serving: None,
            lasts: 0,
            busy: 0,
        }
    }

    /// Ends the transmission that is complete by `now`. Returns its packet, unless it is lost.
    fn finish(
        &mut self,
        now: Nanos,
        transmitter: &mut TransmitterView<'_>,
    ) -> Option<QueuedPacket> {
        let (_, lost, packet) = self.serving.take_if(|(end, _, _)| *end <= now)?;
        self.busy += self.lasts;
        if lost {
            transmitter.drop(packet, DropReason::Loss);
            return None;
        }
        Some(packet)
    }
}

impl<T: PacketTiming> QueueDiscipline for TimedQueue<T> {
    fn take_rate(&mut self, rate: &mut Option<StepFunction<u64>>) -> Result<(), BuildError> {
        self.rate = take_constant(rate, T::NOT_CONSTANT)? as f64;
        Ok(())
    }

    fn enqueue(
        &mut self,
        _: Nanos,
        packet: QueuedPacket,
        _: &mut TransmitterView<'_>,
    ) -> Result<(), EnqueueError> {
        if !self.limit.admits(self.occupancy(), packet.size()) {
            let reason = DropReason::QueueFull;
            return Err(EnqueueError { packet, reason });
        }
        self.waiting.push(packet);
        Ok(())
    }

    fn dequeue(
        &mut self,
        now: Nanos,
        transmitter: &mut TransmitterView<'_>,
    ) -> Option<QueuedPacket> {
        let sent = self.finish(now, transmitter);
        if self.serving.is_none()
            && let Some(packet) = self.waiting.front()
        {
            let next = self.timing.next(now, packet, self.rate, transmitter.rng);
            // The cast truncates, so 0.5 is added to round to the nearest nanosecond.
            self.lasts = (packet.size() as f64 * 8e9 / next.rate + 0.5) as Nanos;
            let end = next.begin.saturating_add(self.lasts);
            self.serving = self.waiting.pop().map(|packet| (end, next.lost, packet));
        }
        sent
    }

    fn remove(&mut self) -> Option<QueuedPacket> {
        let serving = self.serving.take().map(|(_, _, packet)| packet);
        serving.or_else(|| self.waiting.pop())
    }

    fn occupancy(&self) -> Occupancy {
        let mut occupancy = self.waiting.occupancy();
        if let Some((_, _, packet)) = &self.serving {
            occupancy.add(packet.size());
        }
        occupancy
    }

    /// Total duration of the transmissions that are complete by `now`.
    fn busy(&self, now: Nanos) -> Nanos {
        match &self.serving {
            Some((end, _, _)) if *end <= now => self.busy + self.lasts,
            _ => self.busy,
        }
    }

    /// End time of the current transmission.
    fn wake_up(&self, _: Nanos) -> Option<Nanos> {
        self.serving.as_ref().map(|(end, _, _)| *end)
    }
}

/// Takes the rate of a link for a discipline that needs a constant rate.
///
/// # Errors
/// [`BuildError::Parameters`] with the message `otherwise`, if the link has no rate or its rate
/// changes.
pub(crate) fn take_constant(
    rate: &mut Option<StepFunction<u64>>,
    otherwise: &'static str,
) -> Result<u64, BuildError> {
    let constant = rate.take().and_then(|rate| rate.as_constant());
    constant.ok_or(BuildError::Parameters(otherwise))
}
