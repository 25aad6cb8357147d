//! Rates of ground links that depend on the elevation of the satellite, or on the number of
//! stations that share the satellite.

use std::cell::RefCell;
use std::rc::Rc;

use anabranch_transport::Nanos;

use crate::ephemeris::Ephemeris;
use crate::error::BuildError;
use crate::packet::{NO_RECEIVER, Packet};
use crate::queue::timed::{PacketTiming, TimedQueue, Transmission};
use crate::queue::{QueueDiscipline, QueuedPacket};
use crate::rng::Rng;

/// Minimum elevation at which a rate applies, and the rate as a share of the link's rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ElevationStep {
    /// Minimum elevation, degrees.
    pub elevation: f64,
    /// Share of the link's rate, above 0 and at most 1.
    pub share: f64,
}

/// Numbers of the first link and the first body among the receivers of packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Receiver {
    pub link: usize,
    pub body: usize,
}

impl Receiver {
    /// Body that receives a packet; `None` if the packet specifies no receiver.
    pub fn body(self, packet: &Packet) -> Option<u32> {
        let known = packet.receiver != NO_RECEIVER;
        known.then(|| (packet.receiver as usize / 2 - self.link + self.body) as u32)
    }
}

/// Shares of the transmitter's rate that apply to the receivers of one body.
#[derive(Clone, Debug)]
pub(super) struct RateShares {
    motion: Rc<RefCell<Ephemeris>>,
    /// Number of the sending body.
    from: u32,
    /// Steps in ascending order: sine of the minimum elevation, and share.
    steps: Rc<[(f64, f64)]>,
    /// Whether the stations of a satellite have equal shares.
    shared: bool,
}

impl RateShares {
    pub fn new(
        motion: Rc<RefCell<Ephemeris>>,
        from: u32,
        (steps, shared): (&[ElevationStep], bool),
    ) -> Self {
        let sine = |step: &ElevationStep| (libm::sin(step.elevation.to_radians()), step.share);
        Self {
            motion,
            from,
            steps: steps.iter().map(sine).collect(),
            shared,
        }
    }

    /// Whether every receiver gets the whole rate.
    pub fn are_whole(&self) -> bool {
        self.steps.is_empty() && !self.shared
    }

    /// Share of the rate for the receiver `to`. Below the first elevation the share of the first
    /// step applies.
    pub fn share(&self, to: u32, now: Nanos) -> f64 {
        let mut motion = self.motion.borrow_mut();
        let first = motion.shells().len() as u32;
        let (satellite, station) = (self.from.min(to), self.from.max(to) - first);
        let by_elevation = match self.steps.is_empty() {
            true => 1.0,
            false => {
                let sine = motion.sine_of_elevation(station as usize, satellite, now);
                let sine = sine.unwrap_or(-1.0);
                let passed = self.steps.partition_point(|(least, _)| *least <= sine);
                self.steps[passed.max(1) - 1].1
            }
        };
        match self.shared {
            true => by_elevation / f64::from(motion.served_with(satellite, station as usize)),
            false => by_elevation,
        }
    }
}

/// Packet timing in which the receiver of a packet determines the rate.
#[derive(Debug)]
pub(super) struct ByReceiver {
    shares: RateShares,
    receiver: Receiver,
}

impl ByReceiver {
    /// Creates a queue with the limit of `queue` and rates by receiver.
    ///
    /// # Errors
    /// [`BuildError::Parameters`] if `queue` is not a drop-tail queue.
    pub fn queue(
        queue: &dyn QueueDiscipline,
        shares: RateShares,
        receiver: Receiver,
    ) -> Result<TimedQueue<Self>, BuildError> {
        let limit = queue.as_drop_tail().ok_or(BuildError::Parameters(
            "a rate by elevation or by load needs a drop-tail queue: a number of packets or bytes",
        ))?;
        Ok(TimedQueue::with(limit, Self { shares, receiver }))
    }
}

impl PacketTiming for ByReceiver {
    const NOT_CONSTANT: &'static str =
        "a rate by elevation or by load needs a constant rate of its link: the greatest";

    fn next(&mut self, now: Nanos, packet: &QueuedPacket, rate: f64, _: &mut Rng) -> Transmission {
        let to = self.receiver.body(packet.packet());
        Transmission {
            begin: now,
            rate: to.map_or(rate, |to| rate * self.shares.share(to, now)),
            lost: false,
        }
    }
}
