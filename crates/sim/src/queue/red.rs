//! RED (Floyd and Jacobson, *Random early detection gateways for congestion avoidance*, 1993):
//! drops or marks arriving packets with a probability that rises with the average length of the
//! queue.
//!
//! Implements the `gentle_` mode of ns-2, which the authors recommend since 2000: above `max_th`
//! the probability rises further, until it is 1 at twice `max_th`.

use anabranch_settings::{Kind, KindEntry, idle_if, kind};
use anabranch_transport::Nanos;

use super::{
    EnqueueError, Fifo, LIMIT, Occupancy, QueueDiscipline, QueueLimit, QueuedPacket, TIME,
    TransmitterView, above_zero,
};
use crate::error::BuildError;
use crate::packet::DropReason;
use crate::rng::{Probability, Rng};

/// Value kind of a number of packets.
const PACKETS: Kind = Kind::count(1, 1_000_000);
/// Value kind of a fraction above 0, up to 1.
const SHARE: Kind = above_zero(1.0);

kind! {
    /// Settings of [`Red`].
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct RedConfig: Default {
        /// Average queue length, in packets, up to which no packet is dropped.
        min_th: u64 = 5, PACKETS, "Floyd and Jacobson 1993, §4";
        /// Average queue length, in packets, at which the probability is `max_p`.
        /// Must be above `min_th`.
        max_th: u64 = 15, PACKETS, "Floyd and Jacobson 1993, §4";
        /// Probability at `max_th`.
        max_p: f64 = 0.1, SHARE, "Floyd and Jacobson 1993, §4";
        /// Weight of the current queue length in the average (w_q).
        w_q: f64 = 0.002, SHARE, "Floyd and Jacobson 1993, §6";
        /// Transmission time of a typical packet. While the link is idle, the average falls as if
        /// one packet had found an empty queue in each such time.
        packet_time: Nanos = "1 ms", TIME, "Floyd and Jacobson 1993, §4";
        /// Between `max_th` and twice `max_th` the probability rises to 1. Off: every packet is
        /// dropped if the average is above `max_th`.
        gentle: bool = true, Kind::Flag, "ns-2, gentle_";
        /// Keep a minimum distance between two drops: at a probability p, the next packet is
        /// dropped or marked only after 1 / p packets. Off: there is no minimum distance, as in the
        /// paper.
        wait: bool = false, Kind::Flag, "ns-2, wait_";
        /// While at most one packet waits, drop and mark no packet, regardless of the average. The
        /// first packet that then finds more packets waiting is not dropped or marked either. Off:
        /// the average alone decides, as in the paper.
        spare: bool = false, Kind::Flag, "ns-2, red.cc (qlen > 1, old)";
        /// The average queue length counts only waiting packets. Off: it also counts the packet in
        /// transmission, like `limit`.
        waiting_only: bool = false, Kind::Flag, "ns-2, red.cc (estimator)";
        /// Mark packets of senders that use ECN instead of dropping them, while the probability is
        /// below 1.
        ecn: bool = false, Kind::Flag, "RFC 3168 §7";
        limit: QueueLimit as LIMIT;
    }
    redundant {
        gentle: |it, ()| idle_if(
            it.max_p == 1.0,
            "with `max_p = 1`, above which nothing rises",
        );
    }
    /// RED: drops or marks arriving packets at random, with a probability that grows with the
    /// average queue length (Floyd and Jacobson 1993).
    pub(super) static ENTRY: KindEntry<Box<dyn QueueDiscipline>> =
        "red", |config, ()| Ok(Box::new(Red::new(config)?));
}

/// The RED discipline.
#[derive(Debug)]
pub struct Red {
    config: RedConfig,
    waiting: Fifo,
    /// Average queue length, packets (`avg`).
    average: f64,
    /// Number of packets since the last drop (`count`); `None` if the average has been below
    /// `min_th` since then.
    count: Option<u64>,
    /// Time up to which the average includes the idle time of the queue (`q_time`). A packet that
    /// arrives at an empty queue and is dropped moves this time forward. `None` while the queue is
    /// not empty.
    idle: Option<Nanos>,
}

impl Red {
    /// Creates an empty queue.
    ///
    /// # Errors
    /// [`BuildError::EmptyQueue`] for a limit of 0, [`BuildError::Parameters`] if `min_th` is not
    /// below `max_th`.
    pub fn new(config: RedConfig) -> Result<Self, BuildError> {
        if config.min_th >= config.max_th {
            return Err(BuildError::Parameters("`min_th` is not below `max_th`"));
        }
        config.limit.checked()?;
        Ok(Self {
            config,
            waiting: Fifo::new(),
            average: 0.0,
            count: None,
            idle: Some(0),
        })
    }

    /// Updates the average for an arriving packet that finds `packets` in the queue.
    fn sample(&mut self, now: Nanos, packets: usize) {
        let weight = self.config.w_q;
        if let Some(since) = &mut self.idle {
            let samples = now.saturating_sub(*since) / self.config.packet_time;
            *since = now;
            self.average *= power(1.0 - weight, samples);
        }
        self.average = (1.0 - weight) * self.average + weight * packets as f64;
    }

    /// Whether the queue is too short for a drop. With the default weight the average falls by only
    /// 0.2 % per packet, so it remains above `min_th` long after the senders have slowed down.
    /// Further drops would then leave the link idle.
    fn spares(&self) -> bool {
        self.config.spare && self.waiting.occupancy().packets <= 1
    }

    /// Base probability that follows from the average alone (`p_b`), and whether packets of ECN
    /// senders must be dropped, too.
    fn base(&self) -> (f64, bool) {
        let RedConfig {
            min_th: min,
            max_th: max,
            max_p: probability,
            gentle,
            ..
        } = self.config;
        let (min, max) = (min as f64, max as f64);
        if self.average < min {
            (0.0, false)
        } else if self.average < max {
            (probability * (self.average - min) / (max - min), false)
        } else if gentle && self.average < 2.0 * max {
            let beyond = (self.average - max) / max;
            (probability + (1.0 - probability) * beyond, false)
        } else {
            (1.0, true)
        }
    }

    /// Selects the arriving packet for a drop or mark: `Some(true)` if it must be dropped,
    /// `Some(false)` if it may be marked, and `None` if it passes. Drops are spread evenly: the
    /// probability is p_b / (1 - count p_b) (§4). With `wait`, no packet is selected before count
    /// p_b reaches 1, and the probability then is p_b / (2 - count p_b) (ns-2, `wait_`).
    fn chooses(&mut self, rng: &mut Rng) -> Option<bool> {
        let (base, surely) = self.base();
        if base <= 0.0 || self.spares() {
            self.count = None;
            return None;
        }
        if self.config.spare && self.count.is_none() {
            self.count = Some(1); // includes this packet
            return None;
        }
        let count = self.count.map_or(0, |count| count + 1);
        let waited = count as f64 * base;
        if self.config.wait && waited < 1.0 {
            self.count = Some(count);
            return None;
        }
        let left = if self.config.wait { 2.0 } else { 1.0 } - waited;
        let probability = if left <= base { 1.0 } else { base / left };
        let probability = Probability::new(probability).unwrap_or(Probability::ALWAYS);
        let goes = rng.chance(probability);
        self.count = Some(if goes { 0 } else { count });
        goes.then_some(surely)
    }
}

/// Integer power of `base` by squaring. It needs only products, which IEEE 754 rounds identically
/// on every platform.
fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut result = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    result
}

impl QueueDiscipline for Red {
    fn enqueue(
        &mut self,
        now: Nanos,
        mut packet: QueuedPacket,
        transmitter: &mut TransmitterView<'_>,
    ) -> Result<(), EnqueueError> {
        let occupancy = self.waiting.with(transmitter.in_service);
        let counted = if self.config.waiting_only {
            self.waiting.occupancy()
        } else {
            occupancy
        };
        self.sample(now, counted.packets);
        if !self.config.limit.admits(occupancy, packet.size()) {
            let reason = DropReason::QueueFull;
            return Err(EnqueueError { packet, reason });
        }
        if let Some(surely) = self.chooses(transmitter.rng) {
            let marked = self.config.ecn && !surely && packet.mark();
            if !marked {
                let reason = DropReason::Aqm;
                return Err(EnqueueError { packet, reason });
            }
        }
        self.idle = None;
        self.waiting.push(packet);
        Ok(())
    }

    fn dequeue(&mut self, now: Nanos, _: &mut TransmitterView<'_>) -> Option<QueuedPacket> {
        let packet = self.waiting.pop();
        if packet.is_none() {
            self.idle.get_or_insert(now);
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
