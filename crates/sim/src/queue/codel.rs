//! CoDel (RFC 8289): a queue that keeps the time packets spend in it short, by dropping or marking at its head.
//!
//! Not the length tells a queue that only absorbs a burst from one that stands, but how long packets stay: if even the
//! least sojourn time of an interval is above the target, the queue stands, and one packet goes. Until the sojourn time
//! is below the target again, the next ones go at intervals that shrink with the square root of their number, to which a
//! TCP's rate answers linearly.

use anabranch_settings::{Entry, Kind, kind};
use anabranch_transport::Nanos;

use super::{Fifo, LIMIT, Limit, Occupancy, QueueDiscipline, Queued, Refused, TIME, Transmitter};
use crate::error::BuildError;
use crate::packet::DropReason;

kind! {
    /// The settings of [`CoDel`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct CoDelConfig: Default {
        /// Acceptable sojourn time of packets in a standing queue.
        target: Nanos = "5 ms", TIME, "RFC 8289 §4.3";
        /// How long the sojourn time must exceed `target` before the first drop: about the largest
        /// common round-trip time.
        interval: Nanos = "100 ms", TIME, "RFC 8289 §4.2";
        /// A queue of at most this size is never too long.
        mtu: u64 = "1500 B", Kind::bytes(0, 1 << 30), "RFC 8289 §4.4";
        /// Mark packets of senders that use ECN instead of dropping them.
        ecn: bool = false, Kind::Flag, "RFC 3168 §5";
        limit: Limit as LIMIT;
    }
    /// CoDel: drops or marks packets at the head of the queue while packets wait too long (RFC 8289).
    pub(super) static ENTRY: Entry<Box<dyn QueueDiscipline>> =
        "codel", |config, ()| Ok(Box::new(CoDel::new(config)?));
}

/// The discipline of RFC 8289 §5.
#[derive(Debug)]
pub struct CoDel {
    config: CoDelConfig,
    waiting: Fifo,
    /// When the sojourn time will have been above the target for an interval (`first_above_time_`).
    above_until: Option<Nanos>,
    /// In the drop state (`dropping_`): since when is in `drop_next`.
    dropping: bool,
    /// When the next packet goes (`drop_next_`).
    drop_next: Nanos,
    /// Packets that went in this drop state (`count_`), and in the one before when it began (`lastcount_`).
    count: u32,
    last_count: u32,
}

/// The packet at the head, and whether the queue stands.
struct Head {
    packet: Queued,
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

    /// When the packet after number `count` goes (RFC 8289 §5.3, `control_law`). Square root and division are IEEE 754's,
    /// exactly rounded, hence the same everywhere.
    fn control_law(&self, from: Nanos, count: u32) -> Nanos {
        let step = self.config.interval as f64 / f64::from(count).sqrt();
        from.saturating_add(step as Nanos)
    }

    /// Takes the head and judges the queue by it (§5.5, `dodequeue`).
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

    /// Marks the head, which then is what is sent, or drops it and takes the next.
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

    /// The drop state begins (§5.5, second branch). What was learnt in one that ended lately is not forgotten.
    fn begin_dropping(&mut self, now: Nanos) {
        self.dropping = true;
        let learnt = self.count - self.last_count;
        let lately = now.saturating_sub(self.drop_next) < 16 * self.config.interval;
        self.count = if learnt > 1 && lately { learnt } else { 1 };
        self.drop_next = self.control_law(now, self.count);
        self.last_count = self.count;
    }

    /// Every packet whose time has come goes (§5.5, first branch).
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
        packet: Queued,
        transmitter: &mut Transmitter<'_>,
    ) -> Result<(), Refused> {
        let occupancy = self.waiting.with(transmitter.in_service);
        if !self.config.limit.admits(occupancy, packet.size()) {
            let reason = DropReason::QueueFull;
            return Err(Refused { packet, reason });
        }
        self.waiting.push(packet);
        Ok(())
    }

    fn dequeue(&mut self, now: Nanos, transmitter: &mut Transmitter<'_>) -> Option<Queued> {
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

    fn remove(&mut self) -> Option<Queued> {
        self.waiting.pop()
    }

    fn occupancy(&self) -> Occupancy {
        self.waiting.occupancy()
    }
}

#[cfg(test)]
mod tests;
