//! PIE (RFC 8033): drops or marks arriving packets with a probability. A controller adjusts the
//! probability so that the queueing delay approaches its target.
//!
//! The queueing delay is estimated as the queue length divided by the departure rate (§4.2, §4.3).
//! The RFC also permits the sojourn time of departing packets, which describes the past: while a
//! long queue drains, sojourn times stay long, and the probability continues to rise. One TCP flow
//! on 10 Mbit/s then had a throughput of 5.3 Mbit/s in place of 9.4.

use anabranch_settings::{Kind, KindEntry, kind};
use anabranch_transport::Nanos;

use super::{
    EnqueueError, Fifo, LIMIT, Occupancy, QueueDiscipline, QueueLimit, QueuedPacket, TIME,
    TransmitterView,
};
use crate::error::BuildError;
use crate::packet::DropReason;
use crate::rng::{Probability, Rng};

kind! {
    /// Settings of [`Pie`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PieConfig: Default {
        /// Target queueing delay (QDELAY_REF).
        target: Nanos = "15 ms", TIME, "RFC 8033 §4.2";
        /// Time between two updates of the probability (T_UPDATE).
        update: Nanos = "15 ms", TIME, "RFC 8033 §4.2";
        /// Duration of a burst in which no packet is dropped, if the queue was short before
        /// (MAX_BURST).
        burst: Nanos = "150 ms", Kind::duration(0, 3_600_000_000_000), "RFC 8033 §4.4";
        /// Mean size of packets (MEAN_PKTSIZE): no packet is dropped while the queue holds at most
        /// two packets of this size.
        packet: u64 = "1500 B", Kind::bytes(1, 1 << 30), "RFC 8033 §4.1";
        /// Mark packets of senders that use ECN instead of dropping them, as long as the
        /// probability is below 10 %.
        ecn: bool = false, Kind::Flag, "RFC 8033 §5.1";
        limit: QueueLimit as LIMIT;
    }
    /// PIE: drops or marks arriving packets at random, with a probability that keeps the queueing
    /// delay near `target` (RFC 8033).
    pub(super) static ENTRY: KindEntry<Box<dyn QueueDiscipline>> =
        "pie", |config, ()| Ok(Box::new(Pie::new(config)?));
}

/// Gains of the controller, per second: for the distance of the delay from the target, and for the
/// increase of the delay (§4.2: alpha, beta).
const ALPHA: f64 = 0.125;
const BETA: f64 = 1.25;
/// Factor by which each update multiplies the probability while the queue is empty (§4.2).
const DECAY: f64 = 0.98;
/// Auto-tuning (§4.2): if the probability is below the first value of an entry, its change is
/// divided by the second value.
const TUNING: [(f64, f64); 6] = [
    (0.000_001, 2_048.0),
    (0.000_01, 512.0),
    (0.000_1, 128.0),
    (0.001, 32.0),
    (0.01, 8.0),
    (0.1, 2.0),
];
/// Cap on growth (§5.5): from the first value on, the probability grows by at most the second value
/// per update.
const CAPPED: (f64, f64) = (0.1, 0.02);
/// Probability up to which no packet is dropped if the queueing delay was short at the last update
/// (§4.1).
const SMALL: f64 = 0.2;
/// Probability up to which packets are marked and not dropped (§5.1: mark_ecnth).
const MARKED: f64 = 0.1;
/// Minimum queue length in bytes for a measurement of the departure rate; also the number of bytes
/// that one measurement covers (§4.3: DQ_THRESHOLD).
const MEASURED: u64 = 1 << 14;
/// Weight of a new measurement in the average departure rate (§4.3).
const NEW_RATE: f64 = 0.5;
/// De-randomization (§5.4): no packet is dropped until the accumulated probability reaches the
/// first value; at the second value a packet is always dropped.
const SPREAD: (f64, f64) = (0.85, 8.5);

/// The PIE discipline of RFC 8033 §4 and §5, with de-randomization (§5.4) and the cap on growth
/// (§5.5).
#[derive(Debug)]
pub struct Pie {
    config: PieConfig,
    waiting: Fifo,
    /// Drop probability (`drop_prob_`), and the sum of the probabilities since the last drop
    /// (`accu_prob_`).
    probability: f64,
    accumulated: f64,
    /// Remaining burst allowance (`burst_allowance_`), nanoseconds.
    burst: Nanos,
    /// Queueing delay at the last update and at the one before (`qdelay_old_`), nanoseconds.
    delay: Nanos,
    old_delay: Nanos,
    /// Departure rate in bytes per second (`avg_dq_rate_`); `None` before the first measurement.
    rate: Option<f64>,
    /// Start time of the current measurement, and the bytes that left since then.
    measured: Option<(Nanos, u64)>,
    next_update: Nanos,
}

impl Pie {
    /// Creates an empty queue.
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

    /// Performs the updates of the probability that are due. Their inputs change only at the
    /// arrival or departure of a packet, so it is sufficient to call this function then.
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

    /// Whether updates change only the burst allowance, because the probability, the delays and the
    /// queue length are 0.
    fn is_at_rest(&self) -> bool {
        let empty = self.waiting.occupancy().packets == 0;
        self.probability == 0.0 && self.delay == 0 && self.old_delay == 0 && empty
    }

    fn is_short(&self, delay: Nanos) -> bool {
        delay < self.config.target / 2
    }

    /// Current queueing delay: the time that the queue needs to drain, nanoseconds.
    fn delay_now(&self) -> Nanos {
        let bytes = self.waiting.occupancy().bytes as f64;
        self.rate.map_or(0, |rate| (bytes / rate * 1e9) as Nanos)
    }

    /// Updates the departure rate when a packet of `size` bytes leaves (§4.3). The bytes of a
    /// packet are counted when the next packet leaves, because their transmission takes until then.
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

    /// Updates the drop probability (§4.2). Only operations are used that IEEE 754 rounds
    /// correctly, so the result is the same on every platform.
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

    /// Whether the arriving packet is selected for a drop or mark (§4.1, §5.4).
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
        mut packet: QueuedPacket,
        transmitter: &mut TransmitterView<'_>,
    ) -> Result<(), EnqueueError> {
        self.catch_up(now);
        let occupancy = self.waiting.with(transmitter.in_service);
        if !self.config.limit.admits(occupancy, packet.size()) {
            let reason = DropReason::QueueFull;
            return Err(EnqueueError { packet, reason });
        }
        if self.chooses(transmitter.rng) {
            let marked = self.config.ecn && self.probability < MARKED && packet.mark();
            if !marked {
                let reason = DropReason::Aqm;
                return Err(EnqueueError { packet, reason });
            }
        }
        self.waiting.push(packet);
        Ok(())
    }

    fn dequeue(&mut self, now: Nanos, _: &mut TransmitterView<'_>) -> Option<QueuedPacket> {
        self.catch_up(now);
        let packet = self.waiting.pop();
        match &packet {
            Some(packet) => self.measure(now, packet.size()),
            // The link is idle, so a measurement would include the pause.
            None => self.measured = None,
        }
        packet
    }

    fn remove(&mut self) -> Option<QueuedPacket> {
        self.waiting.pop()
    }

    fn occupancy(&self) -> Occupancy {
        self.waiting.occupancy()
    }
}

#[cfg(test)]
mod tests;
