//! One direction of a point-to-point link, simulated event by event: supports every queue
//! discipline and rates that change.
//!
//! Whenever the transmitter is free, the direction takes a packet from the discipline. From this
//! time on the passage of the packet is known, and the channel stores the packet as on an analytic
//! link. The only further events are the end of a transmission while packets are queued, and
//! wake-ups that the discipline requests.

use std::collections::VecDeque;
use std::fmt;

use anabranch_transport::Nanos;

use super::channel::Channel;
use super::counters::{Counters, Departure};
use super::ingress::{Ingress, losses};
use super::transmitter::Rate;
use super::{DirectionConfig, LinkStats, Offered};
use crate::crossing::CrossingLink;
use crate::error::BuildError;
use crate::packet::{DropReason, Packet, Parcel};
use crate::queue::{
    DropTail, EnqueueError, Occupancy, QueueDiscipline, QueuedPacket, TransmitterView,
};
use crate::rng::{Rng, Seed};
use crate::scheduler::EventKey;

/// The link direction described in the module's documentation.
pub(crate) struct EventDriven {
    /// The interface at the far end.
    to: u32,
    ingress: Ingress,
    queue: Box<dyn QueueDiscipline>,
    rng: Rng,
    rate: Rate,
    /// The packet in transmission.
    in_service: Option<Departure>,
    /// Next call of the discipline: the end of a transmission, or a wake-up, while packets are
    /// queued.
    service: EventKey,
    channel: Channel,
    pub(crate) counters: Counters,
    /// Packets that the discipline drops during the current call; empty between calls.
    dropped: Vec<EnqueueError>,
    /// Copies of packets whose transmission has begun, with the time; `None` if nothing is
    /// captured.
    begun: Option<VecDeque<(Nanos, Packet)>>,
}

impl EventDriven {
    /// Creates the direction towards the interface `to`. `name` has the form
    /// `link <link> <direction>`.
    pub fn new(
        mut config: DirectionConfig,
        link: &str,
        name: &str,
        to: u32,
        seed: Seed,
    ) -> Result<Self, BuildError> {
        let placed = std::mem::take(&mut config.losses);
        let [before_queue, after_queue] = losses(placed, name, seed);
        let mut queue = std::mem::replace(&mut config.queue, Box::new(DropTail::unlimited()));
        queue.take_rate(&mut config.rate)?;
        Ok(Self {
            to,
            ingress: Ingress::new(&mut config, before_queue, link)?,
            queue,
            rng: seed.stream(&format!("{name} queue")),
            rate: Rate::new(config.rate.take()),
            in_service: None,
            service: EventKey::NONE,
            channel: Channel::new(&mut config, after_queue, name, seed),
            counters: Counters::default(),
            dropped: Vec::new(),
            begun: None,
        })
    }

    pub fn tap(&mut self) {
        self.begun.get_or_insert_default();
    }

    pub fn poll_begun(&mut self) -> Option<(Nanos, Packet)> {
        self.begun.as_mut()?.pop_front()
    }

    /// Enables copies of packets for other parts, because the world is divided at this direction.
    pub fn divide(&mut self, crossing: CrossingLink) {
        self.channel.divide(crossing);
    }

    /// See [`super::SimplexLink::least_delay`].
    pub fn least_delay(&self, from: Nanos, until: Nanos) -> Nanos {
        self.channel.least_delay(from, until)
    }

    /// The current MTU.
    pub fn mtu(&self, now: Nanos) -> usize {
        self.ingress.mtu(now)
    }

    #[inline(never)]
    pub fn offer(&mut self, now: Nanos, mut packet: Parcel) -> Offered {
        // A transmission that ends at this instant ends before the packet arrives.
        self.advance(now);
        let (size, refused) = match self.ingress.enter(now, &mut packet) {
            Ok(it) if self.ingress.loses(now, &packet) => (it.size, Some(DropReason::Loss)),
            Ok(it) => (it.size, None),
            Err((size, reason)) => (size, Some(reason)),
        };
        self.counters.stats.offered.add(size);
        match refused {
            None => {
                let queued = QueuedPacket::new(packet, now, size);
                self.enqueue(now, queued);
                self.advance(now);
            }
            Some(reason) => self.counters.dropped(now, reason),
        }
        self.schedule(now);
        Offered {
            transmission: None,
            next_changed: true,
        }
    }

    fn enqueue(&mut self, now: Nanos, queued: QueuedPacket) {
        let size = queued.size();
        let in_service = self.in_service();
        let mut transmitter = TransmitterView {
            in_service,
            rng: &mut self.rng,
            dropped: &mut self.dropped,
        };
        match self.queue.enqueue(now, queued, &mut transmitter) {
            Ok(()) => self.counters.admitted(now, size),
            Err(refused) => self.counters.dropped(now, refused.reason),
        }
        self.count_dropped(now);
    }

    fn in_service(&self) -> Occupancy {
        let mut occupancy = Occupancy::default();
        if let Some(departure) = self.in_service {
            occupancy.add(departure.size);
        }
        occupancy
    }

    /// Counts the packets that the discipline dropped.
    fn count_dropped(&mut self, now: Nanos) {
        for EnqueueError { packet, reason } in self.dropped.drain(..) {
            drop_waiting(&mut self.counters, now, &packet, reason);
        }
    }

    /// Ends the transmission that is complete by `now`, and begins further transmissions.
    fn advance(&mut self, now: Nanos) {
        if self.in_service.is_none() && self.queue.occupancy().packets > 0 {
            self.begin(now);
        }
        while let Some(departure) = self.in_service.take_if(|departure| departure.at <= now) {
            self.counters.departed(departure);
            // The discipline is called even if its queue is empty, because some disciplines update
            // their state then.
            self.begin(departure.at);
        }
    }

    /// Takes the next packet from the discipline and begins its transmission, because the
    /// transmitter is free at `now`.
    fn begin(&mut self, now: Nanos) {
        let Ok(next_outage) = self.ingress.next_outage(now) else {
            while let Some(packet) = self.queue.remove() {
                drop_waiting(&mut self.counters, now, &packet, DropReason::LinkDown);
            }
            return;
        };
        let mut transmitter = TransmitterView {
            in_service: Occupancy::default(),
            rng: &mut self.rng,
            dropped: &mut self.dropped,
        };
        let next = self.queue.dequeue(now, &mut transmitter);
        self.count_dropped(now);
        if let Some(queued) = next {
            self.send(now, queued, next_outage);
        }
    }

    fn send(&mut self, now: Nanos, queued: QueuedPacket, next_outage: Nanos) {
        let finish = self.rate.finish(queued.came(), now, queued.size());
        let flushed = finish > next_outage;
        self.in_service = Some(Departure {
            at: finish.min(next_outage),
            admitted: queued.came(),
            transmission: (!flushed).then_some(finish - now),
            size: queued.size(),
        });
        if flushed {
            return self.counters.dropped(next_outage, DropReason::LinkDown);
        }
        if queued.was_marked() {
            self.counters.marked(now);
        }
        let size = queued.size();
        let came = queued.came();
        let mut parcel = queued.parcel;
        parcel.departed = parcel.departed.min(now);
        if let Some(begun) = &mut self.begun {
            begun.push_back((now, (*parcel).clone()));
        }
        self.channel
            .depart((came, finish), parcel, size, &mut self.counters);
    }

    /// Schedules the next call of the discipline. An event whose time has not changed keeps its
    /// position among the events of the same time.
    fn schedule(&mut self, now: Nanos) {
        let at = if self.queue.occupancy().packets == 0 {
            None
        } else {
            match self.in_service {
                Some(departure) => Some(departure.at),
                None => self.wake_up(now),
            }
        };
        match at {
            None | Some(Nanos::MAX) => self.service = EventKey::NONE,
            Some(at) if self.service != EventKey::NONE && self.service.at() == at => {}
            Some(at) => self.service = EventKey::new(at, now),
        }
    }

    /// Time at which the discipline requests a call although the transmitter is free, at the latest
    /// the start of the next outage.
    fn wake_up(&mut self, now: Nanos) -> Option<Nanos> {
        let outage = self.ingress.next_outage(now).unwrap_or(now);
        let asked = self.queue.wake_up(now).unwrap_or(Nanos::MAX);
        // The call is at least 1 ns later, because a discipline that repeatedly requests the
        // present time would stop simulated time.
        Some(asked.max(now + 1).min(outage))
    }

    #[inline]
    pub fn next(&self) -> EventKey {
        self.channel.next().min(self.service)
    }

    #[inline(never)]
    pub fn step(&mut self, now: Nanos) -> Option<(u32, Parcel)> {
        if self.service < self.channel.next() {
            self.service = EventKey::NONE;
            self.advance(now);
            self.schedule(now);
            return None;
        }
        let packet = self.channel.land(now, &mut self.counters)?;
        Some((self.to, packet))
    }

    pub fn settle(&mut self, now: Nanos) {
        if let Some(departure) = self.in_service.take_if(|departure| departure.at <= now) {
            self.counters.departed(departure);
        }
        if let Some(probes) = &mut self.counters.probes {
            probes.close_bins(now);
        }
    }

    pub fn in_flight(&self) -> u64 {
        (self.queue.occupancy().packets + self.channel.len()) as u64
    }

    pub fn stats(&self, now: Nanos) -> LinkStats {
        let mut stats = self.counters.stats;
        if let Some(departure) = self.in_service.filter(|departure| departure.at <= now) {
            departure.count(&mut stats);
        }
        stats.busy += self.queue.busy(now);
        stats.assignments = self.queue.assignments(now);
        stats
    }
}

/// Counts a queued packet as dropped.
fn drop_waiting(counters: &mut Counters, now: Nanos, packet: &QueuedPacket, reason: DropReason) {
    counters.departed(Departure {
        at: now,
        admitted: packet.came(),
        transmission: None,
        size: packet.size(),
    });
    counters.dropped(now, reason);
}

impl fmt::Debug for EventDriven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventDriven")
            .field("rate", &self.rate)
            .field("occupancy", &self.counters.occupancy)
            .field("flying", &self.channel.len())
            .finish_non_exhaustive()
    }
}
