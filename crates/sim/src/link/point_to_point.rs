//! One direction of a point-to-point link, decided at once: drop-tail, a constant rate.
//!
//! The transmitter sends in the order of admission at a fixed rate, so the whole passage of a packet is known when it is
//! offered: when its last bit leaves, whether the air takes it, when it arrives. It is written down once, and costs one event: its
//! arrival. Where the delay is the same for all and nothing impairs packets, they arrive in that order, too, and one ring holds all that
//! wait or are on their way; else those on their way are kept apart, in the order of arrival.

use std::collections::VecDeque;
use std::fmt;

use anabranch_transport::Nanos;

use super::account::{Account, Departure};
use super::entrance::{Entrance, losses};
use super::flight::Flight;
use super::transmitter::serialisation;
use super::{DirectionConfig, LinkStats, Offered};
use crate::agenda::Key;
use crate::error::BuildError;
use crate::packet::{DropReason, Packet, Parcel};
use crate::queue::Limit;
use crate::rng::Seed;

/// A packet that was admitted, and what becomes of it. One cache line.
struct Passage {
    /// Its arrival at the far end, if it has one and is kept here.
    arrival: Key,
    packet: Option<Parcel>,
    departure: Departure,
}

impl Passage {
    /// It has no arrival, or is kept elsewhere.
    fn without_packet(departure: Departure) -> Self {
        Self {
            arrival: Key::NEVER,
            packet: None,
            departure,
        }
    }
}

/// See the module's text.
pub(crate) struct PointToPoint {
    /// Bits per second; `None`: packets take no time.
    rate: Option<u64>,
    /// The interface at the far end.
    to: u32,
    entrance: Entrance,
    limit: Limit,
    /// When the transmitter has sent all that it has accepted.
    busy_until: Nanos,
    /// The size of the last packet that was sent, and how long that took.
    last: (usize, Nanos),
    /// What was admitted: first what has left the queue, then what has not.
    passages: VecDeque<Passage>,
    /// How many of them have left it.
    left: usize,
    /// The first arrival of them.
    next: Key,
    /// The delay, where all that are on their way are kept there.
    in_order: Option<Nanos>,
    flight: Flight,
    pub(crate) account: Account,
}

impl PointToPoint {
    /// The direction named `name` (`link <link> <direction>`) towards the interface `to`.
    pub fn new(
        mut config: DirectionConfig,
        (rate, limit): (Option<u64>, Limit),
        link: &str,
        name: &str,
        to: u32,
        seed: Seed,
    ) -> Result<Self, BuildError> {
        let placed = std::mem::take(&mut config.losses);
        let [before_queue, after_queue] = losses(placed, name, seed);
        let entrance = Entrance::new(&mut config, before_queue, link)?;
        let flight = Flight::new(&mut config, after_queue, name, seed);
        Ok(Self {
            rate,
            to,
            entrance,
            limit,
            busy_until: 0,
            last: (0, 0),
            passages: VecDeque::new(),
            left: 0,
            next: Key::NEVER,
            in_order: flight.in_order(),
            flight,
            account: Account::default(),
        })
    }

    #[inline]
    pub fn offer(&mut self, now: Nanos, mut packet: Parcel, sequence: &mut u64) -> Offered {
        self.release(now);
        let (fits, size) = self.entrance.fits(now, &mut packet);
        self.account.stats.offered.add(size);
        let next_outage = match self.refused(now, &packet, size, fits) {
            Ok(next_outage) => next_outage,
            Err(reason) => {
                self.account.dropped(now, reason);
                return Offered::REFUSED;
            }
        };
        let start = self.busy_until.max(now);
        packet.departed = packet.departed.min(start);
        let transmission = self.transmission(size);
        let finish = start.saturating_add(transmission);
        let flushed = finish > next_outage;
        self.busy_until = finish.min(next_outage);
        let departure = Departure {
            at: self.busy_until,
            admitted: now,
            transmission: (!flushed).then_some(transmission),
            size,
        };
        self.account.admitted(now, size);
        departure.count(&mut self.account.stats);
        if flushed {
            self.account.dropped(next_outage, DropReason::LinkDown);
        }
        let arrival = match self.in_order {
            _ if flushed => None,
            Some(delay) if self.flight.takes(finish, &packet, &mut self.account) => {
                let arrival = Key::new(finish.saturating_add(delay), *sequence);
                *sequence += 1;
                Some(arrival)
            }
            Some(_) => None,
            None => return self.fly_apart(start, finish, departure, packet, sequence),
        };
        let Some(arrival) = arrival else {
            self.passages.push_back(Passage::without_packet(departure));
            return Offered {
                transmission: (!flushed).then_some(start),
                next_changed: false,
            };
        };
        let next_changed = self.next == Key::NEVER;
        if next_changed {
            self.next = arrival;
        }
        self.passages.push_back(Passage {
            arrival,
            packet: Some(packet),
            departure,
        });
        Offered {
            transmission: Some(start),
            next_changed,
        }
    }

    /// A packet leaves for an air that changes the order of packets, or packets.
    #[inline(never)]
    fn fly_apart(
        &mut self,
        start: Nanos,
        finish: Nanos,
        departure: Departure,
        packet: Parcel,
        sequence: &mut u64,
    ) -> Offered {
        let (flight, account) = (&mut self.flight, &mut self.account);
        let next_changed = flight.depart(finish, packet, departure.size, sequence, account);
        self.passages.push_back(Passage::without_packet(departure));
        Offered {
            transmission: Some(start),
            next_changed,
        }
    }

    /// How long the transmitter works on so many bytes. Most packets of a direction are of one size, and a division is slow.
    #[inline]
    fn transmission(&mut self, size: usize) -> Nanos {
        let Some(rate) = self.rate else {
            return 0;
        };
        if self.last.0 != size {
            self.last = (size, serialisation(size, rate));
        }
        self.last.1
    }

    /// Why the packet may not join the queue, or else when the link goes down next.
    #[inline]
    fn refused(
        &mut self,
        now: Nanos,
        packet: &Packet,
        size: usize,
        fits: bool,
    ) -> Result<Nanos, DropReason> {
        let next_outage = self.entrance.admits(now, packet, fits)?;
        if !self.limit.admits(self.account.occupancy, size) {
            return Err(DropReason::QueueFull);
        }
        Ok(next_outage)
    }

    /// Counts what has left the queue by `now`. A packet whose last bit leaves at `now` has left.
    #[inline]
    fn release(&mut self, now: Nanos) {
        while let Some(passage) = self.passages.get(self.left)
            && passage.departure.at <= now
        {
            self.account.left(&passage.departure);
            self.left += 1;
            // It is not waited for: it was the last before an outage, the air took it, or it is kept elsewhere.
            if self.left == 1 && passage.packet.is_none() {
                self.passages.pop_front();
                self.left = 0;
            }
        }
    }

    /// The largest packet that it carries at `now`.
    pub fn mtu(&self, now: Nanos) -> usize {
        self.entrance.mtu(now)
    }

    #[inline]
    pub fn next(&self) -> Key {
        match self.in_order {
            Some(_) => self.next,
            None => self.flight.next(),
        }
    }

    #[inline]
    pub fn step(&mut self, now: Nanos) -> Option<(u32, Parcel)> {
        if self.in_order.is_none() {
            return self.step_apart(now);
        }
        // What arrives has left before, and so has what was admitted before it.
        if self.left == 0 {
            self.release(now);
        }
        let passage = self.passages.pop_front()?;
        self.left -= 1;
        self.next = match self.passages.front() {
            None => Key::NEVER,
            Some(first) if first.packet.is_some() => first.arrival,
            Some(_) => self.skip(),
        };
        self.account.delivered(now, passage.departure.size);
        Some((self.to, passage.packet?))
    }

    /// Forgets those in front that have left and do not arrive; the first arrival of the others.
    #[cold]
    fn skip(&mut self) -> Key {
        while self.left > 0 && self.passages.front().is_some_and(|it| it.packet.is_none()) {
            self.passages.pop_front();
            self.left -= 1;
        }
        let mut others = self.passages.iter();
        let next = others.find(|it| it.packet.is_some());
        next.map_or(Key::NEVER, |it| it.arrival)
    }

    #[inline(never)]
    fn step_apart(&mut self, now: Nanos) -> Option<(u32, Parcel)> {
        let packet = self.flight.land(now, &mut self.account)?;
        Some((self.to, packet))
    }

    pub fn settle(&mut self, now: Nanos) {
        self.release(now);
        if let Some(probes) = &mut self.account.probes {
            probes.close_bins(now);
        }
    }

    pub fn in_flight(&self) -> u64 {
        let kept = self.passages.iter().filter(|it| it.packet.is_some());
        (kept.count() + self.flight.len()) as u64
    }

    pub fn stats(&self, now: Nanos) -> LinkStats {
        let mut stats = self.account.stats;
        // All were counted when they were admitted.
        let departures = self.passages.iter().map(|it| it.departure);
        let waiting = departures.rev().take_while(|departure| departure.at > now);
        waiting.for_each(|departure| departure.discount(&mut stats));
        stats
    }
}

impl fmt::Debug for PointToPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PointToPoint")
            .field("rate", &self.rate)
            .field("occupancy", &self.account.occupancy)
            .field("flying", &self.in_flight())
            .finish_non_exhaustive()
    }
}
