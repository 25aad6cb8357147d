//! DualPI2 (RFC 9332): two coupled queues that share one link. Packets of scalable senders (ECT(1))
//! wait about a millisecond in the L queue and are marked. All other packets wait in the classic
//! queue, about `target`, and are dropped or marked with the square of the probability from which
//! the marks of the L queue are derived.
//!
//! Implements Appendix A of the RFC with its deterministic choice of packets (`recur`), with two
//! differences. The scheduler is a deficit round robin by bytes, because §4.1.2 prescribes none.
//! The ramp of the L queue uses the sojourn time of the packet.

use anabranch_settings::{Kind, KindEntry, kind};
use anabranch_transport::{Ecn, Nanos};

use super::{
    EnqueueError, Fifo, LIMIT, Occupancy, QueueDiscipline, QueueLimit, QueuedPacket, TIME,
    TransmitterView, above_zero,
};
use crate::error::BuildError;
use crate::packet::DropReason;

kind! {
    /// Settings of [`DualPi2`].
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct DualPi2Config: Default {
        /// Target delay of the classic queue.
        target: Nanos = "15 ms", TIME, "RFC 9332 §2.5.1";
        /// Maximum round-trip time to be expected. It determines the gains of the controller and
        /// the time between two updates of the probability, which is the smaller of `target` and a
        /// third of `rtt_max`.
        rtt_max: Nanos = "100 ms", TIME, "RFC 9332 Appendix A.1";
        /// Coupling factor k: packets of the L queue are marked with k times the base probability,
        /// and packets of the classic queue are dropped or marked with its square.
        coupling: f64 = 2, above_zero(16.0), "RFC 9332 §2.1";
        /// Sojourn time in the L queue above which packets may be marked regardless of the classic
        /// queue.
        l4s_min_th: Nanos = "800 us", TIME, "RFC 9332 Appendix A.1";
        /// Sojourn time in the L queue above which every packet is marked. It must not be below
        /// `l4s_min_th`.
        l4s_max_th: Nanos = "1200 us", TIME, "RFC 9332 Appendix A.1";
        /// Share of the link's rate that the classic queue gets while both queues have packets.
        classic_share: f64 = 0.0625, above_zero(0.5), "RFC 9332 §4.1.2";
        /// Mark classic packets with ECT(0) and do not drop them, as long as the probability is
        /// below 1/k^2.
        ecn: bool = true, Kind::Flag, "RFC 9332 §2.4";
        limit: QueueLimit as LIMIT;
    }
    /// DualPI2: packets with ECT(1) or CE wait in the L queue, for about 1 ms, and are marked; all
    /// others wait in the classic queue, for about `target`. One base probability controls both
    /// queues: the L queue uses a multiple of it, and the classic queue its square (RFC 9332).
    pub(super) static ENTRY: KindEntry<Box<dyn QueueDiscipline>> =
        "dualpi2", |config, ()| Ok(Box::new(DualPi2::new(config)?));
}

/// Gains of the controller per update and per second of delay, for a maximum round-trip time of one
/// second (Appendix A.1).
const ALPHA: f64 = 0.1;
const BETA: f64 = 0.3;
/// Length of the L queue in bytes up to which it is not marked: two packets (Appendix A.1: Th_len).
const RAMP_BYTES: u64 = 2 * 1500;
/// Bytes per scheduler round, for both queues together.
const TURN: f64 = 16.0 * 1514.0;

/// One of the two queues, with its accumulated likelihood of marking or dropping (`recur`) and its
/// deficit in the scheduler.
#[derive(Debug, Default)]
struct Half {
    waiting: Fifo,
    saved: f64,
    credit: f64,
}

impl Half {
    /// Adds `likelihood` to the sum; returns whether the packet is selected because the sum
    /// exceeds 1.
    fn recurs(&mut self, likelihood: f64) -> bool {
        self.saved += likelihood;
        let due = self.saved > 1.0;
        if due {
            self.saved -= 1.0;
        }
        due
    }

    fn is_empty(&self) -> bool {
        self.waiting.occupancy().packets == 0
    }
}

/// The DualPI2 discipline of RFC 9332.
#[derive(Debug)]
pub struct DualPi2 {
    config: DualPi2Config,
    low: Half,
    classic: Half,
    /// Base probability p', 0 to 1.
    probability: f64,
    old_delay: Nanos,
    update: Nanos,
    next_update: Nanos,
}

impl DualPi2 {
    /// Creates empty queues.
    ///
    /// # Errors
    /// [`BuildError::EmptyQueue`] for a limit of 0, [`BuildError::Parameters`] if `l4s_max_th` is
    /// below `l4s_min_th`.
    pub fn new(config: DualPi2Config) -> Result<Self, BuildError> {
        if config.l4s_max_th < config.l4s_min_th {
            return Err(BuildError::Parameters("`l4s_max_th` is below `l4s_min_th`"));
        }
        config.limit.checked()?;
        let update = config.target.min(config.rtt_max / 3).max(1);
        Ok(Self {
            config,
            low: Half::default(),
            classic: Half::default(),
            probability: 0.0,
            old_delay: 0,
            update,
            next_update: update,
        })
    }

    /// Performs the updates of the probability that are due. Each update uses the sojourn time that
    /// the first packet had at the time of the update.
    fn catch_up(&mut self, now: Nanos) {
        while self.next_update <= now {
            if self.probability == 0.0 && self.old_delay == 0 && self.classic.is_empty() {
                let missed = (now - self.next_update) / self.update;
                self.next_update += (missed + 1) * self.update;
                return;
            }
            let at = self.next_update;
            let front = self.classic.waiting.front();
            let delay = front.map_or(0, |first| at.saturating_sub(first.came()));
            self.move_probability(delay);
            self.next_update += self.update;
        }
    }

    /// Updates the base probability. Only operations are used that IEEE 754 rounds correctly, so
    /// the result is the same on every platform.
    fn move_probability(&mut self, delay: Nanos) {
        let seconds = |time: Nanos| time as f64 / 1e9;
        let rtt = seconds(self.config.rtt_max);
        let alpha = ALPHA * seconds(self.update) / (rtt * rtt);
        let beta = BETA / rtt;
        let (now, old) = (seconds(delay), seconds(self.old_delay));
        self.probability += alpha * (now - seconds(self.config.target)) + beta * (now - old);
        self.probability = self.probability.clamp(0.0, 1.0);
        self.old_delay = delay;
    }

    /// Marking likelihood of the native AQM of the L queue (Appendix A.1: laqm), 0 to 1, for a
    /// packet with the sojourn time `waited` and `bytes` in the queue.
    fn ramp(&self, waited: Nanos, bytes: u64) -> f64 {
        let (from, to) = (self.config.l4s_min_th, self.config.l4s_max_th);
        if bytes <= RAMP_BYTES || waited < from {
            0.0
        } else if waited >= to {
            1.0
        } else {
            (waited - from) as f64 / (to - from) as f64
        }
    }

    /// Whether the L queue is served next. If both queues have packets and neither has credit, each
    /// receives its share of a round. The L queue is served first while it has credit.
    fn takes_low(&mut self) -> bool {
        if self.low.is_empty() || self.classic.is_empty() {
            (self.low.credit, self.classic.credit) = (0.0, 0.0);
            return self.classic.is_empty();
        }
        if self.low.credit <= 0.0 && self.classic.credit <= 0.0 {
            let share = self.config.classic_share;
            self.low.credit += TURN * (1.0 - share);
            self.classic.credit += TURN * share;
        }
        self.low.credit > 0.0
    }

    /// Sends, marks or drops a packet of the L queue; returns `None` if it is dropped.
    fn judge_low(
        &mut self,
        now: Nanos,
        mut packet: QueuedPacket,
        transmitter: &mut TransmitterView<'_>,
    ) -> Option<QueuedPacket> {
        let coupled = self.config.coupling * self.probability;
        if coupled < 1.0 {
            let bytes = self.low.waiting.occupancy().bytes + packet.size() as u64;
            let own = self.ramp(packet.sojourn(now), bytes);
            if self.low.recurs(own.max(coupled)) {
                packet.mark();
            }
            return Some(packet);
        }
        // The coupled probability is at least 1, so marks are not sufficient, and packets are
        // dropped with the probability of the classic queue (§4.2.3).
        if self.low.recurs(self.probability * self.probability) {
            transmitter.drop(packet, DropReason::Aqm);
            return None;
        }
        if self.low.recurs(coupled.min(1.0)) {
            packet.mark();
        }
        Some(packet)
    }

    /// Sends, marks or drops a packet of the classic queue; returns `None` if it is dropped.
    fn judge_classic(
        &mut self,
        mut packet: QueuedPacket,
        transmitter: &mut TransmitterView<'_>,
    ) -> Option<QueuedPacket> {
        let likelihood = self.probability * self.probability;
        if !self.classic.recurs(likelihood) {
            return Some(packet);
        }
        let most = (1.0 / (self.config.coupling * self.config.coupling)).min(1.0);
        if self.config.ecn && likelihood < most && packet.mark() {
            return Some(packet);
        }
        transmitter.drop(packet, DropReason::Aqm);
        None
    }
}

impl QueueDiscipline for DualPi2 {
    fn enqueue(
        &mut self,
        now: Nanos,
        packet: QueuedPacket,
        transmitter: &mut TransmitterView<'_>,
    ) -> Result<(), EnqueueError> {
        self.catch_up(now);
        let waiting = self.occupancy();
        let occupancy = Occupancy {
            packets: waiting.packets + transmitter.in_service.packets,
            bytes: waiting.bytes + transmitter.in_service.bytes,
        };
        if !self.config.limit.admits(occupancy, packet.size()) {
            let reason = DropReason::QueueFull;
            return Err(EnqueueError { packet, reason });
        }
        match packet.packet().ecn {
            Ecn::Ect1 | Ecn::Ce => self.low.waiting.push(packet),
            Ecn::NotEct | Ecn::Ect0 => self.classic.waiting.push(packet),
        }
        Ok(())
    }

    fn dequeue(
        &mut self,
        now: Nanos,
        transmitter: &mut TransmitterView<'_>,
    ) -> Option<QueuedPacket> {
        self.catch_up(now);
        loop {
            let judged = if self.takes_low() {
                let packet = self.low.waiting.pop()?;
                self.low.credit -= packet.size() as f64;
                self.judge_low(now, packet, transmitter)
            } else {
                let packet = self.classic.waiting.pop()?;
                self.classic.credit -= packet.size() as f64;
                self.judge_classic(packet, transmitter)
            };
            if judged.is_some() {
                return judged;
            }
        }
    }

    fn remove(&mut self) -> Option<QueuedPacket> {
        self.low
            .waiting
            .pop()
            .or_else(|| self.classic.waiting.pop())
    }

    fn occupancy(&self) -> Occupancy {
        let (low, classic) = (
            self.low.waiting.occupancy(),
            self.classic.waiting.occupancy(),
        );
        Occupancy {
            packets: low.packets + classic.packets,
            bytes: low.bytes + classic.bytes,
        }
    }
}

#[cfg(test)]
mod tests;
