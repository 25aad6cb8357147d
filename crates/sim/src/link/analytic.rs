//! One direction of a point-to-point link with a drop-tail queue and a constant rate, computed
//! analytically.
//!
//! The transmitter sends in the order of admission at a fixed rate, so the whole passage of a
//! packet is known when it is offered: the departure of its last bit, a loss in the channel, and
//! its arrival. A packet is stored once and requires one event, its arrival. If the delay is
//! constant and there are no impairments, packets arrive in the order of admission, and one ring
//! holds all packets in the queue and in flight. Otherwise the channel stores the packets in flight
//! separately, in the order of arrival.

use std::collections::VecDeque;
use std::fmt;

use anabranch_transport::Nanos;

use super::channel::Channel;
use super::counters::{Counters, Departure};
use super::ingress::{Entered, Ingress, losses};
use super::transmitter::Steady;
use super::{DirectionConfig, LinkStats, Offered};
use crate::crossing::CrossingLink;
use crate::error::BuildError;
use crate::packet::{DropReason, Packet, Parcel};
use crate::queue::{Occupancy, QueueLimit};
use crate::rng::Seed;
use crate::scheduler::EventKey;

/// An admitted packet with its computed departure and arrival; one cache line.
struct Passage {
    /// Arrival of the packet at the far end, if it arrives and this ring stores it.
    arrival: EventKey,
    packet: Option<Parcel>,
    departure: Departure,
}

impl Passage {
    /// A passage of a packet that is lost, or that the channel stores.
    fn without_packet(departure: Departure) -> Self {
        Self {
            arrival: EventKey::NONE,
            packet: None,
            departure,
        }
    }
}

/// The link direction described in the module's documentation.
pub(crate) struct Analytic {
    /// The interface at the far end.
    to: u32,
    ingress: Ingress,
    limit: QueueLimit,
    transmitter: Steady,
    /// Admitted packets: first those that have left the queue, then those that are still queued.
    passages: VecDeque<Passage>,
    /// Number of packets in `passages` that have left the queue.
    left: usize,
    /// Earliest arrival of the packets in `passages`.
    next: EventKey,
    /// Propagation delay in nanoseconds, if packets arrive in order and all packets in flight are
    /// stored in `passages`.
    in_order: Option<Nanos>,
    channel: Channel,
    pub(crate) counters: Counters,
}

impl Analytic {
    /// Creates the direction towards the interface `to`. `name` has the form
    /// `link <link> <direction>`.
    pub fn new(
        mut config: DirectionConfig,
        (rate, limit): (Option<u64>, QueueLimit),
        link: &str,
        name: &str,
        to: u32,
        seed: Seed,
    ) -> Result<Self, BuildError> {
        let placed = std::mem::take(&mut config.losses);
        let [before_queue, after_queue] = losses(placed, name, seed);
        let ingress = Ingress::new(&mut config, before_queue, link)?;
        let channel = Channel::new(&mut config, after_queue, name, seed);
        Ok(Self {
            to,
            ingress,
            limit,
            transmitter: Steady::new(rate),
            passages: VecDeque::new(),
            left: 0,
            next: EventKey::NONE,
            in_order: channel.in_order(),
            channel,
            counters: Counters::default(),
        })
    }

    /// The delay in nanoseconds of a plain direction: it accepts packets of any size at any time,
    /// loses none in the channel, and delivers them in order. `None` for other directions.
    pub fn plain_delay(&self) -> Option<Nanos> {
        let plain = self.ingress.is_open() && !self.channel.has_losses();
        self.in_order.filter(|_| plain)
    }

    pub fn limit(&self) -> QueueLimit {
        self.limit
    }

    /// Enables copies of packets for other parts, because the world is divided at this direction.
    pub fn divide(&mut self, crossing: CrossingLink) {
        self.channel.divide(crossing);
    }

    /// See [`super::SimplexLink::least_delay`].
    pub fn least_delay(&self, from: Nanos, until: Nanos) -> Nanos {
        self.channel.least_delay(from, until)
    }

    /// Whether packets may be lost before the queue.
    pub fn may_lose(&self) -> bool {
        self.ingress.has_losses()
    }

    /// Whether a packet is lost before the queue.
    #[inline(never)]
    pub fn loses(&mut self, now: Nanos, packet: &Packet) -> bool {
        self.ingress.loses(now, packet)
    }

    /// Takes over the statistics and the occupancy of a delay line that is converted.
    /// [`Self::carry_on`] then takes over the packets of the delay line, of which the first `left`
    /// have already left the queue.
    pub fn take_over(&mut self, left: usize, stats: LinkStats, occupancy: Occupancy) {
        self.left = left;
        self.counters.stats = stats;
        self.counters.occupancy = occupancy;
    }

    /// The transmitter.
    pub fn transmitter(&self) -> Steady {
        self.transmitter.clone()
    }

    /// Sets the transmitter to that of a delay line.
    pub fn set_transmitter(&mut self, transmitter: Steady) {
        self.transmitter = transmitter;
    }

    /// Takes over the next packet of a delay line, in the order of admission.
    pub fn carry_on(&mut self, arrival: EventKey, packet: Option<Parcel>, departure: Departure) {
        if self.next == EventKey::NONE {
            self.next = arrival;
        }
        self.passages.push_back(Passage {
            arrival,
            packet,
            departure,
        });
    }

    /// Accepts a packet that an interface sends.
    #[inline(never)]
    pub fn offer(&mut self, now: Nanos, mut packet: Parcel) -> Offered {
        self.release(now);
        let (size, next_outage) = match self.ingress.is_open() {
            true => (packet.wire_size(), Nanos::MAX),
            false => match self.ingress.enter(now, &mut packet) {
                Ok(Entered { size, until }) => (size, until),
                Err((size, reason)) => return self.refuse(now, size, reason),
            },
        };
        if self.ingress.loses(now, &packet) {
            return self.refuse(now, size, DropReason::Loss);
        }
        if !self.limit.admits(self.counters.occupancy, size) {
            return self.refuse(now, size, DropReason::QueueFull);
        }
        self.counters.stats.offered.add(size);
        self.transmitter.set_size(size);
        let (start, _) = self.transmitter.send(now);
        packet.departed = packet.departed.min(start);
        let finish = self.transmitter.busy_until;
        let flushed = finish > next_outage;
        if flushed {
            self.transmitter.stop(next_outage);
        }
        let departure = Departure {
            at: self.transmitter.busy_until,
            admitted: now,
            transmission: (!flushed).then_some(finish - start),
            size,
        };
        self.counters.admitted(now, size);
        departure.count(&mut self.counters.stats);
        if flushed {
            self.counters.dropped(next_outage, DropReason::LinkDown);
            self.passages.push_back(Passage::without_packet(departure));
            return Offered::REFUSED;
        }
        let (channel, counters) = (&mut self.channel, &mut self.counters);
        let (next_changed, passage) = match self.in_order {
            None => (
                channel.depart((now, finish), packet, size, counters),
                Passage::without_packet(departure),
            ),
            Some(_) if !channel.takes(finish, &packet, counters) => {
                (false, Passage::without_packet(departure))
            }
            Some(delay) => {
                let arrival = EventKey::new(finish.saturating_add(delay), now);
                channel.copy(arrival, &packet);
                let next_changed = self.next == EventKey::NONE;
                if next_changed {
                    self.next = arrival;
                }
                let packet = Some(packet);
                (
                    next_changed,
                    Passage {
                        arrival,
                        packet,
                        departure,
                    },
                )
            }
        };
        self.passages.push_back(passage);
        Offered {
            transmission: Some(start),
            next_changed,
        }
    }

    /// Drops a packet that the queue does not admit.
    fn refuse(&mut self, now: Nanos, size: usize, reason: DropReason) -> Offered {
        self.counters.stats.offered.add(size);
        self.counters.dropped(now, reason);
        Offered::REFUSED
    }

    /// Marks the packets whose last bit has been sent by `now` as departed, and counts them. A
    /// packet whose last bit leaves exactly at `now` counts as departed.
    fn release(&mut self, now: Nanos) {
        while let Some(passage) = self.passages.get(self.left)
            && passage.departure.at <= now
        {
            self.counters.left(&passage.departure);
            self.left += 1;
            // This passage has no arrival, because the packet was removed by an outage, was lost in
            // the channel, or is stored in the channel.
            if self.left == 1 && passage.packet.is_none() {
                self.passages.pop_front();
                self.left = 0;
            }
        }
    }

    /// The current MTU.
    pub fn mtu(&self, now: Nanos) -> usize {
        self.ingress.mtu(now)
    }

    #[inline]
    pub fn next(&self) -> EventKey {
        match self.in_order {
            Some(_) => self.next,
            None => self.channel.next(),
        }
    }

    /// Runs the next event: a packet arrives.
    #[inline(never)]
    pub fn step(&mut self, now: Nanos) -> Option<(u32, Parcel)> {
        if self.in_order.is_none() {
            let packet = self.channel.land(now, &mut self.counters)?;
            return Some((self.to, packet));
        }
        // An arriving packet, and all packets admitted before it, have already left the queue. They
        // are counted as departed here at the latest, before this packet is removed.
        if self.left == 0 {
            self.release(now);
        }
        let passage = self.passages.pop_front()?;
        self.left -= 1;
        self.next = match self.passages.front() {
            None => EventKey::NONE,
            Some(first) if first.packet.is_some() => first.arrival,
            Some(_) => self.skip(),
        };
        self.counters.delivered(now, passage.departure.size);
        Some((self.to, passage.packet?))
    }

    /// Removes the passages at the front of the ring whose packets have left the queue and do not
    /// arrive from this ring. Returns the first arrival of the remaining packets.
    #[cold]
    fn skip(&mut self) -> EventKey {
        while self.left > 0 && self.passages.front().is_some_and(|it| it.packet.is_none()) {
            self.passages.pop_front();
            self.left -= 1;
        }
        let mut others = self.passages.iter();
        let next = others.find(|it| it.packet.is_some());
        next.map_or(EventKey::NONE, |it| it.arrival)
    }

    pub fn settle(&mut self, now: Nanos) {
        self.release(now);
        if let Some(probes) = &mut self.counters.probes {
            probes.close_bins(now);
        }
    }

    pub fn in_flight(&self) -> u64 {
        let kept = self.passages.iter().filter(|it| it.packet.is_some());
        (kept.count() + self.channel.len()) as u64
    }

    pub fn stats(&self, now: Nanos) -> LinkStats {
        let mut stats = self.counters.stats;
        // The statistics count a packet's departure at its admission; packets that are still queued
        // at `now` are subtracted here.
        let departures = self.passages.iter().map(|it| it.departure);
        let waiting = departures.rev().take_while(|departure| departure.at > now);
        waiting.for_each(|departure| departure.discount(&mut stats));
        stats
    }
}

impl fmt::Debug for Analytic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Analytic")
            .field("transmitter", &self.transmitter)
            .field("occupancy", &self.counters.occupancy)
            .field("flying", &self.in_flight())
            .finish_non_exhaustive()
    }
}
