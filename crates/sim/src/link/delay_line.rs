//! Fast path for the most frequent type of link direction: drop-tail queue, constant rate, and
//! constant delay. Packets may be lost only before the queue, and the direction has no outages,
//! MTU, impairments or observers.
//!
//! The results equal those of [`Analytic`], to which a delay line is converted as soon as it has
//! probes or is captured. Both types store a packet once, when it is offered: packets arrive in
//! order, and the arrival is the only event.

use std::fmt;

use anabranch_transport::Nanos;

use super::analytic::Analytic;
use super::counters::Departure;
use super::transmitter::Steady;
use super::{LinkStats, TrafficCount};
use crate::ids::NodeId;
use crate::packet::{DropReason, Parcel};
use crate::queue::{Occupancy, QueueLimit};
use crate::scheduler::{EventKey, steady_bits, steady_mark};

/// Maximum delay of a delay line, nanoseconds. Directions with a longer delay use the general type,
/// so that sums of times never overflow. A packet that would leave the queue less than a delay
/// before the end of time (2^64 ns) is counted as sent too early.
pub(super) const MAX_DELAY: Nanos = 1 << 62;

/// A packet that was admitted to the queue.
struct Passage {
    /// Arrival of the packet, as a key of the scheduler.
    arrival: EventKey,
    packet: Option<Parcel>,
    admitted: Nanos,
    size: u32,
    /// Transmission time of the packet minus that of a packet of this size after a pause,
    /// nanoseconds. The difference is -1, 0 or 1, because rounding errors are carried over between
    /// packets.
    longer: i8,
}

impl Passage {
    const NONE: Passage = Passage {
        arrival: EventKey::NONE,
        packet: None,
        admitted: 0,
        size: 0,
        longer: 0,
    };
}

/// The link direction described in the module's documentation.
pub(crate) struct DelayLine {
    /// Propagation delay from the last bit sent to the arrival, nanoseconds.
    delay: Nanos,
    /// The node at the far end.
    to: NodeId,
    /// Whether packets may be lost before the queue.
    lossy: bool,
    /// Queue limit in packets and in bytes, including the packet in transmission.
    room: (u64, u64),
    /// Bits of an event key that identify this direction in the scheduler.
    bits: u64,
    transmitter: Steady,
    /// Packets that were admitted and have not arrived. Packet number `n` is at index `n` modulo
    /// the length, which is a power of two.
    ring: Vec<Passage>,
    /// Number of the first packet in the ring, of the first packet whose last bit is not known to
    /// have left (`waiting`), and of the next packet to be admitted. `waiting` may be smaller than
    /// `first`, because it is updated only when needed.
    first: u64,
    waiting: u64,
    end: u64,
    /// Bytes of all packets admitted so far, and of those before `waiting`. All other counters are
    /// derived from these sums and from the ring.
    bytes: u64,
    left_bytes: u64,
    busy: Nanos,
    /// Total time between the admission of packets and the departure of their first bits,
    /// nanoseconds.
    waited: u128,
    /// Maximum queue length on arrival, including the arriving packet; an arrival at an empty queue
    /// is not recorded.
    longest_queue: u64,
    /// Packets that were not admitted.
    refused: TrafficCount,
    /// The direction of the general type to which this one can be converted. Until then it carries
    /// no packets, but decides the losses before the queue and counts drops by reason.
    whole: Analytic,
}

impl DelayLine {
    /// Creates a delay line for `whole`, which is unused and has the constant `delay` in
    /// nanoseconds. `to` is the node at the far end, and `source` the index of the direction among
    /// the event sources.
    pub fn new(whole: Analytic, delay: Nanos, to: NodeId, source: usize) -> Self {
        let room = match whole.limit() {
            QueueLimit::Packets(packets) => (packets as u64, u64::MAX),
            QueueLimit::Bytes(bytes) => (u64::MAX, bytes),
            QueueLimit::Unlimited => (u64::MAX, u64::MAX),
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
            refused: TrafficCount::default(),
            whole,
        }
    }

    /// Converts the delay line to the general type, so that observers can be added.
    pub fn unfold(mut self, now: Nanos) -> Analytic {
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

    /// Accepts a packet of `size` bytes from an interface. Returns the scheduler's mark of the
    /// direction's next event, if the event has changed.
    ///
    /// # Errors
    /// The packet, if it is dropped. The drop is already counted; the caller can reuse the
    /// packet's box.
    #[inline(always)] // Called where agents send, and where routers forward.
    pub fn offer(
        &mut self,
        now: Nanos,
        mut packet: Parcel,
        size: usize,
    ) -> Result<Option<EventKey>, Parcel> {
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
            // The transmitter is idle, so all packets have left the queue.
            self.waiting = self.end;
            self.left_bytes = self.bytes;
        }
        // A packet may exceed the byte limit even if the queue is empty. A packet of the same size
        // as the last one needs no check, because the last one fitted.
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
        let arrival = steady_mark(finish.saturating_add(self.delay), now, self.bits);
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
        self.end = end + 1;
        Ok((end == self.first).then_some(arrival))
    }

    /// Counts the packets whose last bit has been sent by `now` as departed. A packet whose last
    /// bit leaves exactly at `now` counts as departed.
    #[inline(always)]
    fn release(&mut self, now: Nanos) {
        let arrives = now.saturating_add(self.delay);
        while self.waiting != self.end {
            // The slot of a packet that has already arrived can still be read, because it has not
            // been reused.
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
        self.whole.counters.stats.dropped.add(reason);
        packet
    }

    /// Doubles the length of the full ring.
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

    /// Runs the next event: returns the node at which a packet arrives, the packet with its size,
    /// and the scheduler's mark of the next event.
    #[inline(always)] // Called once, where the event of a simplex link is run.
    pub fn arrive(&mut self) -> (NodeId, Option<Parcel>, usize, EventKey) {
        let ring = &mut self.ring[..];
        let mask = ring.len() - 1;
        let passage = &mut ring[self.first as usize & mask];
        let (packet, size) = (passage.packet.take(), passage.size as usize);
        self.first += 1;
        let next = match self.first == self.end {
            true => EventKey::NONE,
            false => ring[self.first as usize & mask].arrival,
        };
        (self.to, packet, size, next)
    }

    /// The next event of the direction: the arrival of the first packet in the ring.
    pub fn next(&self) -> EventKey {
        match self.first == self.end {
            true => EventKey::NONE,
            false => self.get(self.first).arrival.event(),
        }
    }

    /// Number and bytes of queued packets, as of the last update of `waiting`.
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
            // The arrival time saturates at the maximum of `Nanos`; the difference may then be
            // earlier than the admission.
            at: (passage.arrival.at() - self.delay).max(passage.admitted),
            admitted: passage.admitted,
            transmission: Some(takes),
            size,
        }
    }

    /// Number of packets that have arrived: each was an event and a hop.
    pub fn arrived(&self) -> u64 {
        self.first
    }

    pub fn in_flight(&self) -> u64 {
        self.end - self.first
    }

    /// The statistics, with every admitted packet counted as departed.
    fn counted(&self) -> LinkStats {
        let mut stats = self.whole.counters.stats;
        let admitted = TrafficCount {
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

    /// The statistics up to `now`.
    pub fn stats(&self, now: Nanos) -> LinkStats {
        let mut stats = self.counted();
        let passages = (self.first..self.end).map(|number| self.departure(number));
        let waiting = passages.rev().take_while(|departure| departure.at > now);
        waiting.for_each(|departure| departure.discount(&mut stats));
        stats
    }
}

impl fmt::Debug for DelayLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DelayLine")
            .field("waiting", &self.occupancy())
            .field("flying", &self.in_flight())
            .finish_non_exhaustive()
    }
}
