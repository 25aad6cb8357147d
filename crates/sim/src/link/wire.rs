//! One direction of a point-to-point link that nobody looks at, and that does nothing but carry
//! packets: drop-tail, a constant rate and a constant delay, losses only before the queue, no
//! outages, no MTU, no impairments. Most are such.
//!
//! It comes to the same as [`PointToPoint`], which it becomes as soon as it has probes or is
//! captured. What both keep of a packet is written once, when it comes: it arrives in its turn, and
//! its arrival is the only event.

use std::fmt;

use anabranch_transport::Nanos;

use super::account::Departure;
use super::point_to_point::PointToPoint;
use super::transmitter::Steady;
use super::{Count, LinkStats};
use crate::agenda::{Key, steady_bits, steady_mark};
use crate::ids::NodeId;
use crate::packet::{DropReason, Parcel};
use crate::queue::{Limit, Occupancy};

/// A longer delay is for the general direction: what is added up here never wraps. Within a delay
/// of the end of time, what waits is told as sent.
pub(super) const LONGEST_DELAY: Nanos = 1 << 62;

/// A packet that was admitted.
struct Passage {
    /// When it arrives, by the agenda's mark.
    arrival: Key,
    packet: Option<Parcel>,
    admitted: Nanos,
    size: u32,
    /// How much longer the transmitter works on it than after a pause: a nanosecond more or less at
    /// most.
    longer: i8,
}

impl Passage {
    const NONE: Passage = Passage {
        arrival: Key::NEVER,
        packet: None,
        admitted: 0,
        size: 0,
        longer: 0,
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
    /// Room for so many packets and so many bytes, the packet in transmission included.
    room: (u64, u64),
    /// What the agenda calls it.
    bits: u64,
    transmitter: Steady,
    /// What was admitted and has not arrived: number `n` stands at `n` modulo the length, which is
    /// a power of two.
    ring: Vec<Passage>,
    /// The numbers of the first, of the first whose last bit is not known to have left, and of the
    /// next to be admitted. What has arrived has left too: the second may be behind the first.
    first: u64,
    waiting: u64,
    end: u64,
    /// Bytes of all that were admitted, and of those before `waiting`. The rest of the counters
    /// follows from them and from the ring.
    bytes: u64,
    left_bytes: u64,
    busy: Nanos,
    /// How long those that were admitted waited for their first bit to leave.
    waited: u128,
    /// The most that were found before a packet and it; one that found nothing is not told.
    longest_queue: u64,
    /// What was refused, and why.
    refused: Count,
    /// What it is made of, and what it becomes; drops are counted there.
    whole: PointToPoint,
}

impl Wire {
    /// A wire that is `whole`, which nobody has used yet and which is plain with this `delay`; `to`
    /// is the node at its far end, and `source` its number among the sources of events.
    pub fn new(whole: PointToPoint, delay: Nanos, to: NodeId, source: usize) -> Self {
        let room = match whole.limit() {
            Limit::Packets(packets) => (packets as u64, u64::MAX),
            Limit::Bytes(bytes) => (u64::MAX, bytes),
            Limit::Unlimited => (u64::MAX, u64::MAX),
        };
        Self {
            delay,
            to,
            lossy: whole.may_lose(),
            room,
            bits: steady_bits(source),
            transmitter: whole.transmitter(),
            ring: std::iter::repeat_with(|| Passage::NONE).take(4).collect(),
            first: 0,
            waiting: 0,
            end: 0,
            bytes: 0,
            left_bytes: 0,
            busy: 0,
            waited: 0,
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
        self.whole.take_over(left as usize, stats, occupancy);
        for number in first..self.end {
            let departure = self.departure(number);
            let Passage {
                arrival, packet, ..
            } = std::mem::replace(self.at(number), Passage::NONE);
            self.whole.carry_on(arrival.event(), packet, departure);
        }
        self.whole.set_transmitter(self.transmitter);
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

    /// Takes a packet of `size` bytes from an interface. `sequence` numbers the events of the
    /// world. The mark of its next event, if that has changed.
    ///
    /// # Errors
    /// The packet back, which is dropped and counted: the caller has a use for its parcel.
    #[inline(always)] // Where agents send, and where routers forward.
    pub fn offer(
        &mut self,
        now: Nanos,
        mut packet: Parcel,
        size: usize,
        sequence: &mut u64,
    ) -> Result<Option<Key>, Parcel> {
        if self.lossy && self.whole.loses(now, &packet) {
            return Err(self.refuse(packet, size, DropReason::Loss));
        }
        if self.transmitter.busy_until > now {
            self.release(now);
            let queue = self.end - self.waiting;
            let bytes = self.bytes - self.left_bytes + size as u64;
            if queue >= self.room.0 || bytes > self.room.1 {
                return Err(self.refuse(packet, size, DropReason::QueueFull));
            }
            self.longest_queue = self.longest_queue.max(queue + 1);
            self.waited += u128::from(self.transmitter.busy_until - now);
        } else {
            // All have left.
            self.waiting = self.end;
            self.left_bytes = self.bytes;
        }
        // What was sent once has room in an empty queue.
        if !self.transmitter.is_like_last(size) {
            if size as u64 > self.room.1 {
                return Err(self.refuse(packet, size, DropReason::QueueFull));
            }
            self.transmitter.set_size(size);
        }
        let (start, longer) = self.transmitter.send(now);
        packet.departed = packet.departed.min(start);
        let finish = self.transmitter.busy_until;
        self.busy += finish - start;
        self.bytes += size as u64;
        let arrival = steady_mark(finish.saturating_add(self.delay), *sequence, self.bits);
        let end = self.end;
        if self.at(end).packet.is_some() {
            self.widen();
        }
        *self.at(end) = Passage {
            arrival,
            packet: Some(packet),
            admitted: now,
            size: size as u32,
            longer,
        };
        *sequence += 1;
        self.end = end + 1;
        Ok((end == self.first).then_some(arrival))
    }

    /// Forgets what has left the queue by `now`. A packet whose last bit leaves at `now` has left.
    #[inline(always)]
    fn release(&mut self, now: Nanos) {
        let arrives = now.saturating_add(self.delay);
        while self.waiting != self.end {
            // What has arrived is still told here, since nothing was admitted in its place.
            let &Passage { arrival, size, .. } = self.get(self.waiting);
            if arrival.at() > arrives {
                break;
            }
            self.left_bytes += size as u64;
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

    /// Runs the next event: the node a packet arrives at, the packet with its size, and the mark of
    /// the event after it.
    #[inline(always)] // Once, where the event of a lane is run.
    pub fn arrive(&mut self) -> (NodeId, Option<Parcel>, usize, Key) {
        let ring = &mut self.ring[..];
        let mask = ring.len() - 1;
        let passage = &mut ring[self.first as usize & mask];
        let (packet, size) = (passage.packet.take(), passage.size as usize);
        self.first += 1;
        let next = match self.first == self.end {
            true => Key::NEVER,
            false => ring[self.first as usize & mask].arrival,
        };
        (self.to, packet, size, next)
    }

    /// The next event.
    pub fn next(&self) -> Key {
        match self.first == self.end {
            true => Key::NEVER,
            false => self.get(self.first).arrival.event(),
        }
    }

    /// What waits for its last bit to leave, as far as it is known.
    fn occupancy(&self) -> Occupancy {
        Occupancy {
            packets: (self.end - self.waiting) as usize,
            bytes: self.bytes - self.left_bytes,
        }
    }

    fn departure(&self, number: u64) -> Departure {
        let passage = self.get(number);
        let size = passage.size as usize;
        let takes = self.transmitter.takes(size);
        let takes = takes.saturating_add_signed(passage.longer.into());
        Departure {
            // No arrival is put off beyond the end of time.
            at: (passage.arrival.at() - self.delay).max(passage.admitted),
            admitted: passage.admitted,
            transmission: Some(takes),
            size,
        }
    }

    /// How many have arrived: each was an event, and is a hop.
    pub fn arrived(&self) -> u64 {
        self.first
    }

    pub fn in_flight(&self) -> u64 {
        self.end - self.first
    }

    /// What it has counted: what was admitted as if it had left the queue.
    fn counted(&self) -> LinkStats {
        let mut stats = self.whole.account.stats;
        let admitted = Count {
            packets: self.end,
            bytes: self.bytes,
        };
        stats.transmitted = admitted;
        stats.offered = admitted;
        stats.offered.packets += self.refused.packets;
        stats.offered.bytes += self.refused.bytes;
        stats.delivered = admitted;
        for number in self.first..self.end {
            stats.delivered.remove(self.departure(number).size);
        }
        stats.busy = self.busy;
        stats.sojourn = self.waited + u128::from(self.busy);
        stats.longest_queue = self.longest_queue.max(self.end.min(1)) as usize;
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
