//! One direction of a point-to-point link that nobody looks at, and that does nothing but carry packets: drop-tail, a constant rate and a
//! constant delay, losses only before the queue, no outages, no MTU, no impairments. Most are such.
//!
//! It comes to the same as [`PointToPoint`], which it becomes as soon as it has probes or is captured. What both keep of a packet is written
//! once, when it comes: it arrives in its turn, and its arrival is the only event.

use std::fmt;

use anabranch_transport::Nanos;

use super::account::Departure;
use super::point_to_point::PointToPoint;
use super::{Count, LinkStats};
use crate::agenda::Key;
use crate::ids::NodeId;
use crate::packet::{DropReason, Parcel};
use crate::queue::{Limit, Occupancy};

/// A packet that was admitted.
struct Passage {
    /// When its last bit leaves.
    finish: Nanos,
    /// The number of its arrival.
    sequence: u64,
    packet: Option<Parcel>,
    admitted: Nanos,
    size: usize,
}

impl Passage {
    const NONE: Passage = Passage {
        finish: 0,
        sequence: 0,
        packet: None,
        admitted: 0,
        size: 0,
    };
}

/// See the module's text.
pub(crate) struct Wire {
    /// From the last bit to the arrival.
    delay: Nanos,
    /// The node at the far end.
    to: NodeId,
    /// Packets may be lost before the queue.
    lossy: bool,
    limit: Limit,
    /// When the transmitter has sent all that it has accepted.
    busy_until: Nanos,
    /// The size of the last packet that was sent, and how long that took.
    last: (usize, Nanos),
    /// What was admitted and has not arrived: number `n` stands at `n` modulo the length, which is a power of two.
    ring: Vec<Passage>,
    /// The numbers of the first, of the first whose last bit is not known to have left, and of the next to be admitted.
    first: u64,
    waiting: u64,
    end: u64,
    /// Bytes of those from `waiting` on.
    bytes: u64,
    /// What was admitted; the rest of the counters follows from it and from the ring.
    admitted: Count,
    busy: Nanos,
    sojourn: u128,
    longest_queue: usize,
    /// What was refused, and why.
    refused: Count,
    /// What it is made of, and what it becomes; drops are counted there.
    whole: PointToPoint,
}

impl Wire {
    /// A wire that is `whole`, which nobody has used yet and which is plain with this `delay`; `to` is the node at its far end.
    pub fn new(whole: PointToPoint, delay: Nanos, to: NodeId) -> Self {
        Self {
            delay,
            to,
            lossy: whole.may_lose(),
            limit: whole.limit(),
            busy_until: 0,
            // No packet has this size.
            last: (usize::MAX, 0),
            ring: std::iter::repeat_with(|| Passage::NONE).take(4).collect(),
            first: 0,
            waiting: 0,
            end: 0,
            bytes: 0,
            admitted: Count::default(),
            busy: 0,
            sojourn: 0,
            longest_queue: 0,
            refused: Count::default(),
            whole,
        }
    }

    /// The same, for those who look at it.
    pub fn unfold(mut self, now: Nanos) -> PointToPoint {
        self.release(now);
        let stats = self.counted();
        let occupancy = self.occupancy();
        let (first, left) = (self.first, self.waiting - self.first);
        self.whole
            .take_over(self.busy_until, left as usize, stats, occupancy);
        for number in first..self.end {
            let departure = self.departure(number);
            let Passage {
                finish,
                sequence,
                packet,
                ..
            } = std::mem::replace(self.at(number), Passage::NONE);
            let arrival = Key::new(finish.saturating_add(self.delay), sequence);
            self.whole.carry_on(arrival, packet, departure);
        }
        self.whole
    }

    #[inline(always)]
    fn at(&mut self, number: u64) -> &mut Passage {
        let place = number as usize & (self.ring.len() - 1);
        &mut self.ring[place]
    }

    #[inline(always)]
    fn get(&self, number: u64) -> &Passage {
        &self.ring[number as usize & (self.ring.len() - 1)]
    }

    /// Takes a packet from an interface. `sequence` numbers the events of the world. Its next event, if that has changed.
    ///
    /// # Errors
    /// The packet back, which is dropped and counted: the caller has a use for its parcel.
    #[inline(always)] // Where agents send, and where routers forward.
    pub fn offer(
        &mut self,
        now: Nanos,
        mut packet: Parcel,
        sequence: &mut u64,
    ) -> Result<Option<Key>, Parcel> {
        self.release(now);
        let size = packet.wire_size();
        if self.lossy && self.whole.loses(now, &packet) {
            return Err(self.refuse(packet, size, DropReason::Loss));
        }
        let queue = (self.end - self.waiting) as usize;
        if !self.limit.admits(self.occupancy(), size) {
            return Err(self.refuse(packet, size, DropReason::QueueFull));
        }
        if self.end - self.first == self.ring.len() as u64 {
            self.widen();
        }
        let start = self.busy_until.max(now);
        packet.departed = packet.departed.min(start);
        if self.last.0 != size {
            self.last = (size, self.whole.takes(size));
        }
        let finish = start.saturating_add(self.last.1);
        self.busy_until = finish;
        self.busy += self.last.1;
        self.sojourn += u128::from(finish - now);
        self.admitted.add(size);
        self.bytes += size as u64;
        self.longest_queue = self.longest_queue.max(queue + 1);
        let arrival = Key::new(finish.saturating_add(self.delay), *sequence);
        let (alone, end) = (self.end == self.first, self.end);
        *self.at(end) = Passage {
            finish,
            sequence: *sequence,
            packet: Some(packet),
            admitted: now,
            size,
        };
        *sequence += 1;
        self.end = end + 1;
        Ok(alone.then_some(arrival))
    }

    /// Forgets what has left the queue by `now`. A packet whose last bit leaves at `now` has left.
    #[inline(always)]
    fn release(&mut self, now: Nanos) {
        while self.waiting != self.end {
            let &Passage { finish, size, .. } = self.get(self.waiting);
            if finish > now {
                break;
            }
            self.bytes -= size as u64;
            self.waiting += 1;
        }
    }

    #[cold]
    fn refuse(&mut self, packet: Parcel, size: usize, reason: DropReason) -> Parcel {
        self.refused.add(size);
        self.whole.account.stats.dropped.add(reason);
        packet
    }

    /// The ring is full: one of twice its length.
    #[cold]
    fn widen(&mut self) {
        let length = self.ring.len() * 2;
        let empty = || Passage::NONE;
        let mut ring: Vec<_> = std::iter::repeat_with(empty).take(length).collect();
        for number in self.first..self.end {
            ring[number as usize & (length - 1)] =
                std::mem::replace(self.at(number), Passage::NONE);
        }
        self.ring = ring;
    }

    /// Runs the next event: the node a packet arrives at and the packet, and the event after it.
    #[inline(always)] // Once, where the event of a lane is run.
    pub fn arrive(&mut self) -> (NodeId, Option<Parcel>, Key) {
        let first = self.first;
        let passage = self.at(first);
        let (packet, size) = (passage.packet.take(), passage.size);
        if packet.is_some() {
            // What arrives has left the queue.
            if self.waiting == first {
                self.bytes -= size as u64;
                self.waiting += 1;
            }
            self.first += 1;
        }
        (self.to, packet, self.next())
    }

    /// The next event.
    #[inline(always)]
    pub fn next(&self) -> Key {
        if self.first == self.end {
            return Key::NEVER;
        }
        let first = self.get(self.first);
        Key::new(first.finish.saturating_add(self.delay), first.sequence)
    }

    /// What waits for its last bit to leave, as far as it is known.
    #[inline(always)]
    fn occupancy(&self) -> Occupancy {
        Occupancy {
            packets: (self.end - self.waiting) as usize,
            bytes: self.bytes,
        }
    }

    fn departure(&self, number: u64) -> Departure {
        let passage = self.get(number);
        Departure {
            at: passage.finish,
            admitted: passage.admitted,
            transmission: Some(self.whole.takes(passage.size)),
            size: passage.size,
        }
    }

    pub fn in_flight(&self) -> u64 {
        self.end - self.first
    }

    /// What it has counted: what was admitted as if it had left the queue.
    fn counted(&self) -> LinkStats {
        let mut stats = self.whole.account.stats;
        stats.transmitted = self.admitted;
        stats.offered = self.admitted;
        stats.offered.packets += self.refused.packets;
        stats.offered.bytes += self.refused.bytes;
        stats.delivered = self.admitted;
        for number in self.first..self.end {
            stats.delivered.remove(self.departure(number).size);
        }
        stats.busy = self.busy;
        stats.sojourn = self.sojourn;
        stats.longest_queue = self.longest_queue;
        stats
    }

    /// What it did up to `now`.
    pub fn stats(&self, now: Nanos) -> LinkStats {
        let mut stats = self.counted();
        let passages = (self.first..self.end).map(|number| self.departure(number));
        let waiting = passages.rev().take_while(|departure| departure.at > now);
        waiting.for_each(|departure| departure.discount(&mut stats));
        stats
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire")
            .field("waiting", &self.occupancy())
            .field("flying", &self.in_flight())
            .finish_non_exhaustive()
    }
}
