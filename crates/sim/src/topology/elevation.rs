//! Transmitters of ground links whose rate depends on the elevation of the satellite.

use std::cell::RefCell;
use std::rc::Rc;

use anabranch_transport::Nanos;

use crate::ephemeris::Ephemeris;
use crate::error::BuildError;
use crate::packet::{NO_RECEIVER, Packet};
use crate::queue::timed::{TimedFifo, duration, take_constant};
use crate::queue::{EnqueueError, Occupancy, QueueDiscipline, QueuedPacket, Transmitter};
use crate::step_function::StepFunction;

/// The least elevation of a rate, and the rate as a share of that of the link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ElevationStep {
    /// Degrees.
    pub elevation: f64,
    /// Above 0, at most 1.
    pub share: f64,
}

/// The receivers of packets: links and bodies are numbered from these on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Receiver {
    pub link: usize,
    pub body: usize,
}

impl Receiver {
    /// The body that receives a packet.
    pub fn body(self, packet: &Packet) -> Option<u32> {
        let known = packet.receiver != NO_RECEIVER;
        known.then(|| (packet.receiver as usize / 2 - self.link + self.body) as u32)
    }
}

/// A drop-tail queue whose packets are sent at the rate of their receiver's elevation.
#[derive(Debug)]
pub(super) struct ByElevation {
    fifo: TimedFifo,
    motion: Rc<RefCell<Ephemeris>>,
    receiver: Receiver,
    /// The body that sends.
    from: u32,
    /// Sines of the least elevations, ascending, and shares.
    steps: Vec<(f64, f64)>,
    /// Rate of the link, bits per second.
    rate: f64,
}

impl ByElevation {
    /// With the limit of `queue`.
    ///
    /// # Errors
    /// [`BuildError::Parameters`] if that is not a drop-tail queue.
    pub fn new(
        queue: &dyn QueueDiscipline,
        steps: &[ElevationStep],
        (motion, receiver, from): (Rc<RefCell<Ephemeris>>, Receiver, u32),
    ) -> Result<Self, BuildError> {
        let limit = queue.as_drop_tail().ok_or(BuildError::Parameters(
            "a rate by elevation needs a drop-tail queue: a number of packets or bytes",
        ))?;
        let sine = |step: &ElevationStep| (libm::sin(step.elevation.to_radians()), step.share);
        Ok(Self {
            fifo: TimedFifo::new(limit),
            motion,
            receiver,
            from,
            steps: steps.iter().map(sine).collect(),
            rate: 0.0,
        })
    }

    /// The rate of the next packet. Below the first elevation, the rate of the first elevation
    /// applies.
    fn share(&self, now: Nanos) -> f64 {
        let mut motion = self.motion.borrow_mut();
        let to = self
            .fifo
            .front()
            .and_then(|it| self.receiver.body(it.packet()));
        let Some(to) = to else { return 1.0 };
        let first = motion.shells().len() as u32;
        let (satellite, station) = (self.from.min(to), self.from.max(to) - first);
        let sine = motion.sine_of_elevation(station as usize, satellite, now);
        let sine = sine.unwrap_or(-1.0);
        let passed = self.steps.partition_point(|(least, _)| *least <= sine);
        self.steps
            .get(passed.max(1) - 1)
            .map_or(1.0, |(_, share)| *share)
    }
}

impl QueueDiscipline for ByElevation {
    fn take_rate(&mut self, rate: &mut Option<StepFunction<u64>>) -> Result<(), BuildError> {
        let otherwise = "a rate by elevation needs a constant rate of its link: the greatest";
        self.rate = take_constant(rate, otherwise)? as f64;
        Ok(())
    }

    fn enqueue(
        &mut self,
        _: Nanos,
        packet: QueuedPacket,
        _: &mut Transmitter<'_>,
    ) -> Result<(), EnqueueError> {
        self.fifo.enqueue(packet)
    }

    fn dequeue(&mut self, now: Nanos, transmitter: &mut Transmitter<'_>) -> Option<QueuedPacket> {
        let sent = self.fifo.finish(now, transmitter);
        if let Some(size) = self.fifo.next() {
            let lasts = duration(size, self.rate * self.share(now));
            self.fifo.start(now, lasts, false);
        }
        sent
    }

    fn remove(&mut self) -> Option<QueuedPacket> {
        self.fifo.remove()
    }

    fn occupancy(&self) -> Occupancy {
        self.fifo.occupancy()
    }

    fn busy(&self, now: Nanos) -> Nanos {
        self.fifo.busy(now)
    }

    fn wake_up(&self, _: Nanos) -> Option<Nanos> {
        self.fifo.wake_up()
    }
}
