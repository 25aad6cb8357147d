//! CoDel (RFC 8289): keeps the sojourn time of packets short by dropping or marking at the head of
//! the queue.
//!
//! CoDel distinguishes a standing queue from one that absorbs a burst by sojourn time and not by
//! length: if the minimum sojourn time during an interval is above the target, the queue stands,
//! and one packet is dropped. Until the sojourn time is below the target again, further packets are
//! dropped at intervals that shrink with the square root of their number, because the rate of a TCP
//! sender responds linearly to that.

use anabranch_settings::{Kind, KindEntry, kind};
use anabranch_transport::Nanos;

use super::{
    EnqueueError, Fifo, LIMIT, Limit, Occupancy, QueueDiscipline, QueuedPacket, TIME, Transmitter,
};
use crate::error::BuildError;
use crate::packet::DropReason;

kind! {
    /// The settings of [`CoDel`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct CoDelConfig: Default {
        /// Acceptable sojourn time of packets in a standing queue.
        target: Nanos = "5 ms", TIME, "RFC 8289 §4.3";
        /// Time for which the sojourn time must exceed `target` before the first drop: about the
        /// largest common round-trip time.
        interval: Nanos = "100 ms", TIME, "RFC 8289 §4.2";
        /// A queue of at most this size never causes a drop or mark.
        mtu: u64 = "1500 B", Kind::bytes(0, 1 << 30), "RFC 8289 §4.4";
        /// Mark packets of senders that use ECN instead of dropping them.
        ecn: bool = false, Kind::Flag, "RFC 3168 §5";
        limit: Limit as LIMIT;
    }
    /// CoDel: drops or marks packets at the head of the queue while packets wait too long (RFC
    /// 8289).
    pub(super) static ENTRY: KindEntry<Box<dyn QueueDiscipline>> =
        "codel", |config, ()| Ok(Box::new(CoDel::new(config)?));
}

/// The discipline of RFC 8289 §5.
#[derive(Debug)]
pub struct CoDel {
    config: CoDelConfig,
    waiting: Fifo,
    /// The time at which the sojourn time will have been above the target for an interval
    /// (`first_above_time_`).
    above_until: Option<Nanos>,
    /// Whether the drop state is active (`dropping_`); its start is in `drop_next`.
    dropping: bool,
    /// The time of the next drop (`drop_next_`).
    drop_next: Nanos,
    /// Packets dropped in this drop state (`count_`), and in the previous one when this one began
    /// (`lastcount_`).
    count: u32,
    last_count: u32,
}

/// The packet at the head, and whether the queue stands.
struct Head {
    packet: QueuedPacket,
    stands: bool,
}

impl CoDel {
    /// An empty queue.
    ///
    /// # Errors
    /// [`BuildError::EmptyQueue`] for a limit of 0.
    pub fn new(config: CoDelConfig) -> Result<Self, BuildError> {
        config.limit.checked()?;
        Ok(Self {
            config,
            waiting: Fifo::new(),
            above_until: None,
            dropping: false,
            drop_next: 0,
            count: 0,
            last_count: 0,
        })
    }

    /// The time of the drop after drop number `count` (RFC 8289 §5.3, `control_law`). Square root
    /// and division are correctly rounded (IEEE 754), hence the same on every platform.
    fn control_law(&self, from: Nanos, count: u32) -> Nanos {
        let step = self.config.interval as f64 / f64::from(count).sqrt();
        from.saturating_add(step as Nanos)
    }

    /// Dequeues the head and checks the sojourn time (§5.5, `dodequeue`).
    fn head(&mut self, now: Nanos) -> Option<Head> {
        let Some(packet) = self.waiting.pop() else {
            self.above_until = None;
            return None;
        };
        let short = packet.sojourn(now) < self.config.target
            || self.waiting.occupancy().bytes <= self.config.mtu;
        let mut stands = false;
        if short {
            self.above_until = None;
        } else {
            let until = *self
                .above_until
                .get_or_insert(now.saturating_add(self.config.interval));
            stands = now >= until;
        }
        Some(Head { packet, stands })
    }

    /// Marks the head, which is then sent, or drops it and takes the next packet.
    fn punish(
        &mut self,
        now: Nanos,
        mut head: Head,
        transmitter: &mut Transmitter<'_>,
    ) -> (Option<Head>, bool) {
        if self.config.ecn && head.packet.mark() {
            return (Some(head), true);
        }
        transmitter.drop(head.packet, DropReason::Aqm);
        (self.head(now), false)
    }

    /// Enters the drop state (§5.5, second branch). Reuses the drop rate of a previous drop state
    /// that ended recently.
    fn begin_dropping(&mut self, now: Nanos) {
        self.dropping = true;
        let learnt = self.count - self.last_count;
        let lately = now.saturating_sub(self.drop_next) < 16 * self.config.interval;
        self.count = if learnt > 1 && lately { learnt } else { 1 };
        self.drop_next = self.control_law(now, self.count);
        self.last_count = self.count;
    }

    /// Drops every packet that is due (§5.5, first branch).
    fn go_on_dropping(
        &mut self,
        now: Nanos,
        mut head: Head,
        transmitter: &mut Transmitter<'_>,
    ) -> Option<Head> {
        while self.dropping && now >= self.drop_next {
            self.count += 1;
            let (next, marked) = self.punish(now, head, transmitter);
            self.dropping = next.as_ref().is_some_and(|next| next.stands);
            if self.dropping {
                self.drop_next = self.control_law(self.drop_next, self.count);
            }
            if marked {
                return next;
            }
            head = next?;
        }
        Some(head)
    }
}

impl QueueDiscipline for CoDel {
    fn enqueue(
        &mut self,
        _now: Nanos,
        packet: QueuedPacket,
        transmitter: &mut Transmitter<'_>,
    ) -> Result<(), EnqueueError> {
        let occupancy = self.waiting.with(transmitter.in_service);
        if !self.config.limit.admits(occupancy, packet.size()) {
            let reason = DropReason::QueueFull;
            return Err(EnqueueError { packet, reason });
        }
        self.waiting.push(packet);
        Ok(())
    }

    fn dequeue(&mut self, now: Nanos, transmitter: &mut Transmitter<'_>) -> Option<QueuedPacket> {
        let Some(head) = self.head(now) else {
            self.dropping = false;
            return None;
        };
        let head = if self.dropping {
            self.dropping = head.stands;
            self.go_on_dropping(now, head, transmitter)
        } else if head.stands {
            let (next, _) = self.punish(now, head, transmitter);
            self.begin_dropping(now);
            next
        } else {
            Some(head)
        };
        head.map(|head| head.packet)
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
