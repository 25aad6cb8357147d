//! CoDel (RFC 8289): keeps the sojourn times of packets short by dropping or marking packets at the
//! head of the queue.
//!
//! CoDel detects a standing queue by sojourn time and not by length, because a long queue may be a
//! burst that drains soon. If the minimum sojourn time during an interval is above the target, the
//! queue is a standing one, and one packet is dropped. Further packets are dropped until the
//! sojourn time is below the target again. The time between drops shrinks with the square root of
//! the number of drops, so that the rate of a TCP sender decreases linearly.

use anabranch_settings::{Kind, KindEntry, kind};
use anabranch_transport::Nanos;

use super::{
    EnqueueError, Fifo, LIMIT, Occupancy, QueueDiscipline, QueueLimit, QueuedPacket, TIME,
    TransmitterView,
};
use crate::error::BuildError;
use crate::packet::DropReason;

kind! {
    /// Settings of [`CoDel`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct CoDelConfig: Default {
        /// Acceptable sojourn time of packets in a standing queue.
        target: Nanos = "5 ms", TIME, "RFC 8289 §4.3";
        /// Time for which the sojourn time must exceed `target` before the first drop: about the
        /// largest common round-trip time.
        interval: Nanos = "100 ms", TIME, "RFC 8289 §4.2";
        /// Queue length up to which CoDel neither drops nor marks.
        mtu: u64 = "1500 B", Kind::bytes(0, 1 << 30), "RFC 8289 §4.4";
        /// Mark packets of senders that use ECN instead of dropping them.
        ecn: bool = false, Kind::Flag, "RFC 3168 §5";
        limit: QueueLimit as LIMIT;
    }
    /// CoDel: drops or marks packets at the head of the queue while packets wait too long (RFC
    /// 8289).
    pub(super) static ENTRY: KindEntry<Box<dyn QueueDiscipline>> =
        "codel", |config, ()| Ok(Box::new(CoDel::new(config)?));
}

/// The CoDel discipline of RFC 8289 §5.
#[derive(Debug)]
pub struct CoDel {
    config: CoDelConfig,
    waiting: Fifo,
    /// Time at which the sojourn time will have been above the target for a whole interval
    /// (`first_above_time_`); `None` while it is below the target.
    above_until: Option<Nanos>,
    /// Whether the drop state is active (`dropping_`).
    dropping: bool,
    /// Time of the next drop (`drop_next_`), nanoseconds.
    drop_next: Nanos,
    /// Number of drops in the current drop state (`count_`), and the value of `count_` when this
    /// state began (`lastcount_`).
    count: u32,
    last_count: u32,
}

/// The dequeued head packet, and whether it may be dropped because the queue is a standing one.
struct Head {
    packet: QueuedPacket,
    stands: bool,
}

impl CoDel {
    /// Creates an empty queue.
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

    /// Time of the next drop after drop number `count` (RFC 8289 §5.3, `control_law`). IEEE 754
    /// requires correct rounding of square root and division, so the result is the same on every
    /// platform.
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

    /// Marks the head packet if possible, so that it is sent. Otherwise drops it, and takes the
    /// next packet.
    fn punish(
        &mut self,
        now: Nanos,
        mut head: Head,
        transmitter: &mut TransmitterView<'_>,
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
        transmitter: &mut TransmitterView<'_>,
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
        transmitter: &mut TransmitterView<'_>,
    ) -> Result<(), EnqueueError> {
        let occupancy = self.waiting.with(transmitter.in_service);
        if !self.config.limit.admits(occupancy, packet.size()) {
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
