//! One direction of a point-to-point link, decided at once: drop-tail, a constant rate.
//!
//! The transmitter sends in the order of admission at a fixed rate, so the whole passage of a packet is known when it is
//! offered: when its last bit leaves, whether the air takes it, when it arrives. It is written down once, in the order
//! of arrival, and costs one event: its arrival. Departures are only remembered to know how many still wait.

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
    departures: VecDeque<Departure>,
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
        Ok(Self {
            rate,
            to,
            entrance: Entrance::new(&mut config, before_queue, link)?,
            limit,
            busy_until: 0,
            last: (0, 0),
            departures: VecDeque::new(),
            flight: Flight::new(&mut config, after_queue, name, seed),
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
        self.departures.push_back(Departure {
            at: self.busy_until,
            admitted: now,
            transmission: (!flushed).then_some(transmission),
            size,
        });
        self.account.admitted(now, size);
        if flushed {
            self.account.dropped(next_outage, DropReason::LinkDown);
            return Offered::REFUSED;
        }
        Offered {
            transmission: Some(start),
            next_changed: self
                .flight
                .depart(finish, packet, size, sequence, &mut self.account),
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

    /// Lets go of what has left the queue by `now`. A packet whose last bit leaves at `now` has left.
    #[inline]
    fn release(&mut self, now: Nanos) {
        while let Some(departure) = self.departures.front().copied() {
            if departure.at > now {
                break;
            }
            self.departures.pop_front();
            self.account.departed(departure);
        }
    }

    #[inline]
    pub fn next(&self) -> Key {
        self.flight.next()
    }

    #[inline]
    pub fn step(&mut self, now: Nanos) -> Option<(u32, Parcel)> {
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
        self.flight.len() as u64
    }

    pub fn stats(&self, now: Nanos) -> LinkStats {
        let mut stats = self.account.stats;
        let left = self.departures.iter().take_while(|d| d.at <= now);
        left.for_each(|&departure| departure.count(&mut stats));
        stats
    }
}

impl fmt::Debug for PointToPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PointToPoint")
            .field("rate", &self.rate)
            .field("occupancy", &self.account.occupancy)
            .field("flying", &self.flight.len())
            .finish_non_exhaustive()
    }
}
