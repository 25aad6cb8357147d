//! PIE (RFC 8033): drops or marks packets as they come, with a probability that a controller moves until the queueing delay is at its target.
//!
//! The delay is what waits by the rate at which it leaves (§4.2, §4.3). The time that a packet has spent when it leaves, which the RFC lets one
//! take instead, tells of the past: while a long queue drains it stays long, and the probability goes on rising (one TCP flow on 10 Mbit/s
//! then had 5.3 instead of 9.4 Mbit/s).

use anabranch_settings::{Entry, Kind, kind};
use anabranch_transport::Nanos;

use super::{Fifo, LIMIT, Limit, Occupancy, QueueDiscipline, Queued, Refused, TIME, Transmitter};
use crate::error::BuildError;
use crate::packet::DropReason;
use crate::rng::{Probability, Rng};

kind! {
    /// The settings of [`Pie`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PieConfig: Default {
        /// Target queueing delay (QDELAY_REF).
        target: Nanos = "15 ms", TIME, "RFC 8033 §4.2";
        /// Time between two updates of the probability (T_UPDATE).
        update: Nanos = "15 ms", TIME, "RFC 8033 §4.2";
        /// Length of a burst that is not dropped after the queue was short (MAX_BURST).
        burst: Nanos = "150 ms", Kind::duration(0, 3_600_000_000_000), "RFC 8033 §4.4";
        /// Mean size of packets (MEAN_PKTSIZE): no packet is dropped while the queue holds at most two
        /// of this size.
        packet: u64 = "1500 B", Kind::bytes(1, 1 << 30), "RFC 8033 §4.1";
        /// Mark packets of senders that use ECN instead of dropping them, while the probability is below
        /// 10 %.
        ecn: bool = false, Kind::Flag, "RFC 8033 §5.1";
        limit: Limit as LIMIT;
    }
    /// PIE: drops or marks arriving packets at random, with a probability that keeps the queueing delay
    /// near `target` (RFC 8033).
    pub(super) static ENTRY: Entry<Box<dyn QueueDiscipline>> =
        "pie", |config, ()| Ok(Box::new(Pie::new(config)?));
}

/// The weights of the delay's distance from the target and of its growth, per second (§4.2: alpha, beta).
const ALPHA: f64 = 0.125;
const BETA: f64 = 1.25;
/// What the probability keeps of itself in each update while the queue is empty (§4.2).
const DECAY: f64 = 0.98;
/// Below the first the change of the probability is divided by the second (§4.2, auto-tuning).
const TUNING: [(f64, f64); 6] = [
    (0.000_001, 2_048.0),
    (0.000_01, 512.0),
    (0.000_1, 128.0),
    (0.001, 32.0),
    (0.01, 8.0),
    (0.1, 2.0),
];
/// From the first on the probability grows by no more than the second at a time (§5.5).
const CAPPED: (f64, f64) = (0.1, 0.02);
/// Up to this probability a queue that was short a moment ago is not judged (§4.1).
const SMALL: f64 = 0.2;
/// Up to this probability packets are marked (§5.1: mark_ecnth).
const MARKED: f64 = 0.1;
/// Bytes that must wait before the rate at which they leave is measured, and over which it is (§4.3: DQ_THRESHOLD).
const MEASURED: u64 = 1 << 14;
/// What a new measurement of the rate counts (§4.3).
const NEW_RATE: f64 = 0.5;
/// Between two drops the probabilities of packets must add up to the first; at the second one surely goes (§5.4).
const SPREAD: (f64, f64) = (0.85, 8.5);

/// The discipline of RFC 8033 §4 and §5, with de-randomization (§5.4) and the cap on growth (§5.5).
#[derive(Debug)]
pub struct Pie {
    config: PieConfig,
    waiting: Fifo,
    /// The probability with which a packet goes (`drop_prob_`), and what it came to since the last that went (`accu_prob_`).
    probability: f64,
    accumulated: f64,
    /// How long a burst still may last (`burst_allowance_`).
    burst: Nanos,
    /// Delay at the last update and at the one before it (`qdelay_old_`).
    delay: Nanos,
    old_delay: Nanos,
    /// Bytes a second that leave (`avg_dq_rate_`); `None` before the first measurement.
    rate: Option<f64>,
    /// Since when it is measured, and bytes since then.
    measured: Option<(Nanos, u64)>,
    next_update: Nanos,
}

impl Pie {
    /// An empty queue.
    ///
    /// # Errors
    /// [`BuildError::EmptyQueue`] for a limit of 0.
    pub fn new(config: PieConfig) -> Result<Self, BuildError> {
        config.limit.checked()?;
        Ok(Self {
            config,
            waiting: Fifo::new(),
            probability: 0.0,
            accumulated: 0.0,
            burst: config.burst,
            delay: 0,
            old_delay: 0,
            rate: None,
            measured: None,
            next_update: config.update,
        })
    }

    /// Does the updates that are due. What they depend on changes only when a packet comes or leaves, so that they can be done then.
    fn catch_up(&mut self, now: Nanos) {
        while self.next_update <= now {
            if self.is_at_rest() {
                let missed = (now - self.next_update) / self.config.update;
                self.next_update += (missed + 1) * self.config.update;
                self.burst = self.config.burst;
                return;
            }
            self.update(self.delay_now());
            self.next_update += self.config.update;
        }
    }

    /// No update changes anything but the burst, which is allowed in full.
    fn is_at_rest(&self) -> bool {
        let empty = self.waiting.occupancy().packets == 0;
        self.probability == 0.0 && self.delay == 0 && self.old_delay == 0 && empty
    }

    fn is_short(&self, delay: Nanos) -> bool {
        delay < self.config.target / 2
    }

    /// How long what waits will take to leave.
    fn delay_now(&self) -> Nanos {
        let bytes = self.waiting.occupancy().bytes as f64;
        self.rate.map_or(0, |rate| (bytes / rate * 1e9) as Nanos)
    }

    /// A packet of `size` bytes leaves: moves the rate (§4.3). Bytes are counted until the packet after them leaves, whose wait was
    /// their transmission.
    fn measure(&mut self, now: Nanos, size: usize) {
        let waits = self.waiting.occupancy().bytes + size as u64 >= MEASURED;
        if let Some((since, bytes)) = self.measured
            && bytes >= MEASURED
        {
            if now > since {
                let new = bytes as f64 / (now - since) as f64 * 1e9;
                let old = self.rate.unwrap_or(new);
                self.rate = Some((1.0 - NEW_RATE) * old + NEW_RATE * new);
            }
            self.measured = None;
        }
        if self.measured.is_none() && waits {
            self.measured = Some((now, 0));
        }
        if let Some((_, bytes)) = &mut self.measured {
            *bytes += size as u64;
        }
    }

    /// Moves the probability (§4.2). Only operations that IEEE 754 rounds exactly, hence the same everywhere.
    fn update(&mut self, delay: Nanos) {
        self.old_delay = self.delay;
        self.delay = delay;
        let seconds = |time: Nanos| time as f64 / 1e9;
        let (delay, old) = (seconds(self.delay), seconds(self.old_delay));
        let mut step = ALPHA * (delay - seconds(self.config.target)) + BETA * (delay - old);
        let tuning = TUNING.iter().find(|(below, _)| self.probability < *below);
        step /= tuning.map_or(1.0, |(_, by)| *by);
        if self.probability >= CAPPED.0 {
            step = step.min(CAPPED.1);
        }
        self.probability += step;
        if self.delay == 0 && self.old_delay == 0 {
            self.probability *= DECAY;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        self.burst = self.burst.saturating_sub(self.config.update);
        if self.probability == 0.0 && self.is_short(self.delay) && self.is_short(self.old_delay) {
            self.burst = self.config.burst;
        }
    }

    /// Whether the packet that comes is to go (§4.1, §5.4).
    fn chooses(&mut self, rng: &mut Rng) -> bool {
        let bytes = self.waiting.occupancy().bytes;
        let spared = self.burst > 0
            || (self.is_short(self.delay) && self.probability < SMALL)
            || bytes <= 2 * self.config.packet;
        if spared {
            return false;
        }
        if self.probability == 0.0 {
            self.accumulated = 0.0;
        }
        self.accumulated += self.probability;
        if self.accumulated < SPREAD.0 {
            return false;
        }
        let probability = Probability::new(self.probability).unwrap_or(Probability::ALWAYS);
        let goes = self.accumulated >= SPREAD.1 || rng.chance(probability);
        if goes {
            self.accumulated = 0.0;
        }
        goes
    }
}

impl QueueDiscipline for Pie {
    fn enqueue(
        &mut self,
        now: Nanos,
        mut packet: Queued,
        transmitter: &mut Transmitter<'_>,
    ) -> Result<(), Refused> {
        self.catch_up(now);
        let occupancy = self.waiting.with(transmitter.in_service);
        if !self.config.limit.admits(occupancy, packet.size()) {
            let reason = DropReason::QueueFull;
            return Err(Refused { packet, reason });
        }
        if self.chooses(transmitter.rng) {
            let marked = self.config.ecn && self.probability < MARKED && packet.mark();
            if !marked {
                let reason = DropReason::Aqm;
                return Err(Refused { packet, reason });
            }
        }
        self.waiting.push(packet);
        Ok(())
    }

    fn dequeue(&mut self, now: Nanos, _: &mut Transmitter<'_>) -> Option<Queued> {
        self.catch_up(now);
        let packet = self.waiting.pop();
        match &packet {
            Some(packet) => self.measure(now, packet.size()),
            // Idle: what was begun would count the pause.
            None => self.measured = None,
        }
        packet
    }

    fn remove(&mut self) -> Option<Queued> {
        self.waiting.pop()
    }

    fn occupancy(&self) -> Occupancy {
        self.waiting.occupancy()
    }
}

#[cfg(test)]
mod tests;
