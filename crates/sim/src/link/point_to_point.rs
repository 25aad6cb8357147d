//! One direction of a point-to-point link: queue, transmitter, air.
//!
//! The transmitter sends in the order of admission at a fixed rate, so the whole passage of a packet is known when it is
//! offered: when its last bit leaves, whether the air takes it, when it arrives. It is written down once, in the order
//! of arrival, and costs one event: its arrival. Departures are only remembered to know how many still wait.

use std::collections::VecDeque;
use std::fmt;

use anabranch_transport::Nanos;

use super::impairment::Impairer;
use super::outage::{Down, Outages};
use super::{DirectionConfig, LinkStats, Offered, PlacedLoss};
use crate::agenda::Key;
use crate::error::BuildError;
use crate::loss::{Loss, Place};
use crate::packet::{DropReason, Packet, Parcel};
use crate::probe::LaneProbes;
use crate::queue::{Occupancy, Queue};
use crate::rng::{Rng, Seed};

/// A packet leaves the queue.
#[derive(Clone, Copy, Debug)]
struct Departure {
    at: Nanos,
    admitted: Nanos,
    /// How long the transmitter works on it; `None` if an outage takes it from the queue.
    transmission: Option<Nanos>,
    size: usize,
}

/// A packet in the queue or in the air, by its arrival.
#[derive(Debug)]
struct Flying {
    arrival: Key,
    packet: Parcel,
}

/// A loss model with its random stream.
struct Losing {
    model: Box<dyn Loss>,
    rng: Rng,
}

/// See the module's text.
pub(crate) struct PointToPoint {
    rate: Option<u64>,
    delay: Nanos,
    mtu: usize,
    mtu_changes: VecDeque<(Nanos, usize)>,
    /// The interface at the far end.
    to: u32,
    queue: Box<dyn Queue>,
    queue_rng: Rng,
    before_queue: Vec<Losing>,
    after_queue: Vec<Losing>,
    impairer: Option<Box<Impairer>>,
    outages: Outages,
    /// When the transmitter has sent all that it has accepted.
    busy_until: Nanos,
    occupancy: Occupancy,
    departures: VecDeque<Departure>,
    flying: VecDeque<Flying>,
    stats: LinkStats,
    pub(crate) probes: Option<Box<LaneProbes>>,
}

impl PointToPoint {
    /// The direction named `name` (`link <link> <direction>`) towards the interface `to`.
    pub fn new(
        config: DirectionConfig,
        link: &str,
        name: &str,
        to: u32,
        seed: Seed,
    ) -> Result<Self, BuildError> {
        if config.rate == Some(0) {
            return Err(BuildError::ZeroRate(link.to_owned()));
        }
        let outages =
            Outages::new(config.outages).ok_or_else(|| BuildError::Outages(link.to_owned()))?;
        let (mut before_queue, mut after_queue) = (Vec::new(), Vec::new());
        for (index, loss) in config.losses.into_iter().enumerate() {
            let PlacedLoss {
                place,
                model,
                stream,
            } = loss;
            let stream = stream.unwrap_or_else(|| format!("{name} loss {index}"));
            let losing = Losing {
                model,
                rng: seed.stream(&stream),
            };
            match place {
                Place::BeforeQueue => before_queue.push(losing),
                Place::AfterQueue => after_queue.push(losing),
            }
        }
        Ok(Self {
            rate: config.rate,
            delay: config.delay,
            mtu: config.mtu.unwrap_or(usize::MAX),
            mtu_changes: config.mtu_changes.into(),
            to,
            queue: config.queue,
            queue_rng: seed.stream(&format!("{name} queue")),
            before_queue,
            after_queue,
            impairer: Impairer::new(config.impairments, seed, name),
            outages,
            busy_until: 0,
            occupancy: Occupancy::default(),
            departures: VecDeque::new(),
            flying: VecDeque::new(),
            stats: LinkStats::default(),
            probes: None,
        })
    }

    /// How long `size` bytes take to serialise, rounded to the nearest nanosecond.
    #[inline]
    fn serialisation(&self, size: usize) -> Nanos {
        match self.rate {
            None => 0,
            // A packet has at most 65,575 bytes, so that the product stays far below 2^64.
            Some(rate) => (size as u64 * 8_000_000_000 + rate / 2) / rate,
        }
    }

    pub fn offer(&mut self, now: Nanos, mut packet: Parcel, sequence: &mut u64) -> Offered {
        self.release(now);
        let fits = self.fits(now, &mut packet);
        let size = packet.wire_size();
        self.stats.offered.add(size);
        let next_outage = match self.refused(now, &packet, size, fits) {
            Ok(next_outage) => next_outage,
            Err(reason) => {
                self.drop(now, reason);
                return Offered::REFUSED;
            }
        };
        let start = self.busy_until.max(now);
        packet.departed = packet.departed.min(start);
        let transmission = self.serialisation(size);
        let finish = start.saturating_add(transmission);
        let flushed = finish > next_outage;
        self.busy_until = finish.min(next_outage);
        self.admit(Departure {
            at: self.busy_until,
            admitted: now,
            transmission: (!flushed).then_some(transmission),
            size,
        });
        if flushed {
            self.drop(next_outage, DropReason::LinkDown);
            return Offered::REFUSED;
        }
        let mut next_changed = false;
        if lost(&mut self.after_queue, finish, &packet) {
            self.drop(finish, DropReason::Loss);
        } else {
            next_changed = self.fly(finish.saturating_add(self.delay), packet, sequence);
        }
        Offered {
            transmission: Some(start),
            next_changed,
        }
    }

    /// Whether the packet is no larger than the link carries now, or made so.
    #[inline]
    fn fits(&mut self, now: Nanos, packet: &mut Packet) -> bool {
        while let Some(&(from, mtu)) = self.mtu_changes.front()
            && from <= now
        {
            self.mtu = mtu;
            self.mtu_changes.pop_front();
        }
        packet.fits(self.mtu)
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
        if !fits {
            return Err(DropReason::TooBig);
        }
        let next_outage = self.outages.at(now).map_err(|Down| DropReason::LinkDown)?;
        if lost(&mut self.before_queue, now, packet) {
            return Err(DropReason::Loss);
        }
        let rng = &mut self.queue_rng;
        if !self.queue.admits(now, self.occupancy, size, rng) {
            return Err(DropReason::QueueFull);
        }
        Ok(next_outage)
    }

    #[inline]
    fn admit(&mut self, departure: Departure) {
        self.departures.push_back(departure);
        self.occupancy.packets += 1;
        self.occupancy.bytes += departure.size as u64;
        self.stats.longest_queue = self.stats.longest_queue.max(self.occupancy.packets);
        if let Some(probes) = &mut self.probes {
            probes.queue_length(departure.admitted, self.occupancy.packets);
        }
    }

    /// Lets go of what has left the queue by `now`. A packet whose last bit leaves at `now` has left.
    #[inline]
    fn release(&mut self, now: Nanos) {
        while let Some(departure) = self.departures.front().copied() {
            if departure.at > now {
                break;
            }
            self.departures.pop_front();
            self.occupancy.packets -= 1;
            self.occupancy.bytes -= departure.size as u64;
            count_departure(&mut self.stats, departure);
            if let Some(probes) = &mut self.probes {
                probes.queue_length(departure.at, self.occupancy.packets);
            }
        }
    }

    #[inline]
    fn drop(&mut self, at: Nanos, reason: DropReason) {
        self.stats.dropped.add(reason);
        if let Some(probes) = &mut self.probes {
            probes.dropped(at, reason, self.stats.dropped.count(reason));
        }
    }

    /// Puts a packet into the air; whether the next arrival has changed.
    #[inline]
    fn fly(&mut self, arrival: Nanos, mut packet: Parcel, sequence: &mut u64) -> bool {
        let mut arrival = arrival;
        let mut twin = None;
        if let Some(impairer) = &mut self.impairer {
            if impairer.duplicates() {
                self.stats.duplicated += 1;
                twin = Some((arrival, packet.clone()));
            }
            if let Some(bytes) = impairer.corrupted(&packet.bytes) {
                self.stats.corrupted += 1;
                packet.bytes = bytes;
            }
            if let Some(extra) = impairer.extra_delay() {
                self.stats.reordered += 1;
                arrival = arrival.saturating_add(extra);
            }
        }
        let first = self.insert(arrival, packet, sequence);
        let second = twin.is_some_and(|(arrival, packet)| self.insert(arrival, packet, sequence));
        first || second
    }

    #[inline]
    fn insert(&mut self, arrival: Nanos, packet: Parcel, sequence: &mut u64) -> bool {
        let arrival = Key::new(arrival, *sequence);
        *sequence += 1;
        let flying = Flying { arrival, packet };
        match self.flying.back() {
            // Only packets that were held back are overtaken.
            Some(last) if last.arrival > arrival => {
                let place = self.flying.partition_point(|other| other.arrival < arrival);
                self.flying.insert(place, flying);
                place == 0
            }
            last => {
                let first = last.is_none();
                self.flying.push_back(flying);
                first
            }
        }
    }

    #[inline]
    pub fn next(&self) -> Key {
        self.flying
            .front()
            .map_or(Key::NEVER, |first| first.arrival)
    }

    #[inline]
    pub fn step(&mut self, now: Nanos) -> Option<(u32, Parcel)> {
        let Flying { packet, .. } = self.flying.pop_front()?;
        let size = packet.wire_size();
        self.stats.delivered.add(size);
        if let Some(probes) = &mut self.probes {
            probes.delivered(now, size);
        }
        Some((self.to, packet))
    }

    pub fn settle(&mut self, now: Nanos) {
        self.release(now);
        if let Some(probes) = &mut self.probes {
            probes.close_bins(now);
        }
    }

    pub fn in_flight(&self) -> u64 {
        self.flying.len() as u64
    }

    pub fn stats(&self, now: Nanos) -> LinkStats {
        let mut stats = self.stats;
        let left = self.departures.iter().take_while(|d| d.at <= now);
        left.for_each(|&departure| count_departure(&mut stats, departure));
        stats
    }
}

#[inline]
fn count_departure(stats: &mut LinkStats, departure: Departure) {
    stats.sojourn += u128::from(departure.at - departure.admitted);
    if let Some(transmission) = departure.transmission {
        stats.transmitted.add(departure.size);
        stats.busy += transmission;
    }
}

/// Whether one of the models takes the packet. All are asked, so that no model's draws depend on another's.
#[inline]
fn lost(losses: &mut [Losing], at: Nanos, packet: &Packet) -> bool {
    let mut lost = false;
    for Losing { model, rng } in losses {
        lost |= model.takes(at, packet, rng);
    }
    lost
}

impl fmt::Debug for PointToPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PointToPoint")
            .field("rate", &self.rate)
            .field("delay", &self.delay)
            .field("occupancy", &self.occupancy)
            .field("flying", &self.flying.len())
            .finish_non_exhaustive()
    }
}
