//! Channel of a link direction: losses, propagation delay, duplication, corruption, and the packets
//! in flight.

use std::collections::VecDeque;

use anabranch_transport::Nanos;

use super::DirectionConfig;
use super::counters::Counters;
use super::impairment::Impairer;
use super::ingress::{Losing, lost};
use crate::crossing::CrossingLink;
use crate::packet::{DropReason, Packet, Parcel};
use crate::propagation::{ConstantDelay, Propagation};
use crate::rng::{Rng, Seed};
use crate::scheduler::EventKey;

/// A packet in the channel, with its arrival.
#[derive(Debug)]
struct Flying {
    arrival: EventKey,
    packet: Parcel,
    /// Size on the wire, bytes.
    size: usize,
}

/// A delay that differs between packets.
struct Varying {
    propagation: Box<dyn Propagation>,
    rng: Rng,
    allow_reordering: bool,
    /// Latest arrival so far, nanoseconds.
    latest: Nanos,
}

impl Varying {
    fn arrival(&mut self, finish: Nanos, packet: &Parcel) -> Nanos {
        let delay = self.propagation.delay(finish, packet, &mut self.rng);
        let arrival = finish.saturating_add(delay);
        if self.allow_reordering {
            return arrival;
        }
        self.latest = self.latest.max(arrival);
        self.latest
    }
}

/// Channel of a link direction.
pub(super) struct Channel {
    delay: Nanos,
    /// See [`Channel::in_order`].
    in_order: Option<Nanos>,
    varying: Option<Box<Varying>>,
    losses: Vec<Losing>,
    impairer: Option<Box<Impairer>>,
    /// Packets in flight, in the order of arrival.
    flying: VecDeque<Flying>,
    /// Copies packets for other parts, if the world is divided at this direction.
    crossing: Option<Box<CrossingLink>>,
}

impl Channel {
    /// Moves the parts of the channel out of `config`.
    pub fn new(config: &mut DirectionConfig, losses: Vec<Losing>, name: &str, seed: Seed) -> Self {
        let propagation = std::mem::replace(&mut config.propagation, Box::new(ConstantDelay(0)));
        let fixed = propagation.as_fixed();
        let allow_reordering = config.allow_reordering;
        let varying = || {
            Box::new(Varying {
                propagation,
                rng: seed.stream(&format!("{name} propagation")),
                allow_reordering,
                latest: 0,
            })
        };
        let impairer = Impairer::new(config.impairments, seed, name);
        Self {
            delay: fixed.unwrap_or(0),
            in_order: fixed.filter(|_| impairer.is_none()),
            varying: fixed.is_none().then(varying),
            losses,
            impairer,
            flying: VecDeque::new(),
            crossing: None,
        }
    }

    /// Enables copies of arrivals for other parts, because the world is divided at this direction.
    pub fn divide(&mut self, crossing: CrossingLink) {
        self.crossing = Some(Box::new(crossing));
    }

    /// A lower bound on the delays of packets whose last bit leaves between `from` and `until`.
    pub fn least_delay(&self, from: Nanos, until: Nanos) -> Nanos {
        match &self.varying {
            None => self.delay,
            Some(varying) => varying.propagation.least_delay(from, until),
        }
    }

    /// Copies a packet for another part of a divided world, if it arrives there.
    #[inline]
    pub fn copy(&self, arrival: EventKey, packet: &Packet) {
        if let Some(crossing) = &self.crossing {
            crossing.copy(arrival, packet);
        }
    }

    /// Propagation delay in nanoseconds, if every packet arrives once, unchanged, and in the order
    /// of departure. The caller may then store the packets in flight itself.
    #[inline]
    pub fn in_order(&self) -> Option<Nanos> {
        self.in_order
    }

    /// Whether packets may be lost in the channel.
    pub fn has_losses(&self) -> bool {
        !self.losses.is_empty()
    }

    /// Whether the channel carries a packet whose last bit leaves at `finish`, so that the packet
    /// is not lost.
    #[inline]
    pub fn takes(&mut self, finish: Nanos, packet: &Packet, counters: &mut Counters) -> bool {
        let lost = lost(&mut self.losses, finish, packet);
        if lost {
            counters.dropped(finish, DropReason::Loss);
        }
        !lost
    }

    /// The last bit of a packet that was offered at `came` leaves at `finish`. Returns whether the
    /// next arrival has changed.
    #[inline(always)] // Inlined once for each kind of simplex link, at the end of its longest path.
    pub fn depart(
        &mut self,
        (came, finish): (Nanos, Nanos),
        packet: Parcel,
        size: usize,
        counters: &mut Counters,
    ) -> bool {
        if !self.takes(finish, &packet, counters) {
            return false;
        }
        let arrival = match &mut self.varying {
            None => finish.saturating_add(self.delay),
            Some(varying) => varying.arrival(finish, &packet),
        };
        if self.impairer.is_some() {
            return self.fly_impaired((came, arrival), packet, size, counters);
        }
        self.insert((came, arrival), packet, size)
    }

    #[inline(never)]
    fn fly_impaired(
        &mut self,
        (came, mut arrival): (Nanos, Nanos),
        mut packet: Parcel,
        size: usize,
        counters: &mut Counters,
    ) -> bool {
        let mut twin = None;
        if let Some(impairer) = &mut self.impairer {
            if impairer.duplicates() {
                counters.stats.duplicated += 1;
                twin = Some((arrival, packet.clone()));
            }
            if let Some(bytes) = impairer.corrupted(&packet.bytes) {
                counters.stats.corrupted += 1;
                packet.bytes = bytes;
            }
            if let Some(extra) = impairer.extra_delay() {
                counters.stats.reordered += 1;
                arrival = arrival.saturating_add(extra);
            }
        }
        let first = self.insert((came, arrival), packet, size);
        let second =
            twin.is_some_and(|(arrival, packet)| self.insert((came, arrival), packet, size));
        first || second
    }

    #[inline(always)]
    fn insert(&mut self, (came, arrival): (Nanos, Nanos), packet: Parcel, size: usize) -> bool {
        let arrival = EventKey::new(arrival, came);
        self.copy(arrival, &packet);
        let flying = Flying {
            arrival,
            packet,
            size,
        };
        match self.flying.back() {
            // Only packets that were delayed, or had a longer propagation delay, are overtaken. Of
            // packets with equal keys, the first to be inserted arrives first.
            Some(last) if last.arrival > arrival => {
                let place = self
                    .flying
                    .partition_point(|other| other.arrival <= arrival);
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

    /// Next arrival of a packet in the channel.
    #[inline]
    pub fn next(&self) -> EventKey {
        self.flying
            .front()
            .map_or(EventKey::NONE, |first| first.arrival)
    }

    /// Removes the packet whose arrival is next, and counts it as delivered.
    #[inline(always)]
    pub fn land(&mut self, now: Nanos, counters: &mut Counters) -> Option<Parcel> {
        let Flying { packet, size, .. } = self.flying.pop_front()?;
        counters.delivered(now, size);
        Some(packet)
    }

    /// Number of packets in the channel.
    pub fn len(&self) -> usize {
        self.flying.len()
    }
}
