//! Lookahead for media on which every station hears all others.
//!
//! The station with the earliest deadline occupies the medium until the end of its data frame.
//! Therefore the effects of RTS, CTS and DATA are applied to all stations in one step. A frame that
//! has begun at all stations also ends at all of them, unless a station transmits before. Until its
//! end the frame is *held*: no receiver processes it. The medium need not be advanced until it can
//! have an outcome. [`Medium::catch_up`] processes the pending events when a packet is enqueued or
//! an outcome is due.

use anabranch_transport::Nanos;

use super::single_domain::SingleDomain;
use super::undisturbed::Progress;
use super::{Listener, Medium, Station};
use crate::wifi::dcf::{Exchange, NO_DEADLINE};
use crate::wifi::frame::{Frame, FrameKind, StationId};
use crate::wifi::phy::TransmissionId;

/// The only frame on the air, after it has begun at all stations.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoneFrame {
    pub id: TransmissionId,
    pub frame: Frame,
    pub start: Nanos,
    /// End of the frame at the nearest and at the farthest station, nanoseconds.
    pub ends: (Nanos, Nanos),
}

impl<P> Medium<P> {
    /// Whether the medium can look ahead beyond the next event.
    #[inline]
    pub(crate) fn sees_ahead(&self) -> bool {
        self.single_domain.is_some() && self.frame_traces.is_none()
    }

    /// Whether an event is due at `now`; all earlier events must have been processed.
    #[inline]
    pub(crate) fn is_due(&self, now: Nanos) -> bool {
        self.earliest() <= now
    }

    /// Processes all events before `now`; a frame that ends later may remain held. The caller must
    /// call it before a packet is enqueued, and no later than at the time that
    /// [`next_outcome`](Self::next_outcome) returned.
    pub(crate) fn catch_up(&mut self, now: Nanos) {
        self.holding = self.sees_ahead();
        loop {
            let deadline = self.deadlines.earliest.0;
            if let Some(held) = self.held {
                let (first, last) = held.ends;
                if last < now && last <= deadline {
                    self.held = None;
                    self.end(&held);
                    continue;
                }
                if now < first && now <= deadline {
                    break;
                }
                self.let_go();
            }
            if self.earliest() >= now {
                break;
            }
            self.pass_next(now);
        }
        self.holding = false;
    }

    /// Lower bound of the time at which the next outcome must be reported, if no packet is
    /// enqueued. A delivered packet is reported when the layer above its receiver has processed it.
    /// [`NO_DEADLINE`] if there are no more events.
    pub(crate) fn next_outcome(&mut self) -> Nanos {
        if let Some(held) = &self.held {
            return self.after(held);
        }
        let (deadline, station) = self.deadlines.earliest;
        if deadline == NO_DEADLINE || !self.air.transmissions.is_empty() {
            return self.earliest();
        }
        self.foreseen = self.foresee(deadline, StationId(station as u16));
        match &self.foreseen {
            Some(exchange) => self.told(exchange.arrival()),
            None => deadline,
        }
    }

    /// Time at which the layer above has processed a packet that arrives at `arrival`.
    fn told(&self, arrival: Nanos) -> Nanos {
        arrival + self.rules.parameters.link_layer_delay
    }

    /// Implements [`next_outcome`](Self::next_outcome) while a frame is held.
    fn after(&self, held: &LoneFrame) -> Nanos {
        let Frame { kind, from, to, .. } = held.frame;
        let [acknowledging, acknowledged] = [from, to].map(|it| &self.stations[it.index()]);
        let one_more = !acknowledging.queue.is_empty();
        // After an ACK, all stations that have a packet contend again. Only the deadline of the
        // ACK's sender is already known, so the next outcome is known only if no other station has
        // a packet.
        let turn = match kind {
            FrameKind::Ack
                if acknowledged.queue.len() == 1
                    && self.backlogged == 1 + usize::from(one_more) =>
            {
                match one_more {
                    true => self.turn(from),
                    false => Some(NO_DEADLINE),
                }
            }
            _ => None,
        };
        turn.unwrap_or(held.ends.1 + 1)
    }

    /// Time at which the packet of `station` is reported, if no other station has a packet.
    fn turn(&self, station: StationId) -> Option<Nanos> {
        let dcf = &self.stations[station.index()].dcf;
        let (to, air_time) = dcf.announces()?;
        let delay = self.single_domain.as_ref()?.0[station.index()].delays[to.index()];
        let ends = [station, to];
        debug_assert_ne!(
            dcf.deadline(),
            NO_DEADLINE,
            "it has a packet, and hears nobody"
        );
        let exchange = Exchange::new(ends, dcf.deadline(), delay, air_time, &self.rules);
        Some(self.told(exchange.arrival()))
    }

    /// The exchange of `from`, whose deadline is at `start`, if it is certain to reach the end of
    /// its data frame.
    #[inline]
    fn foresee(&self, start: Nanos, from: StationId) -> Option<Exchange> {
        let mesh = self.single_domain.as_ref()?;
        let (to, air_time) = self.stations[from.index()].dcf.announces()?;
        let delays = &mesh.0[from.index()].delays[..];
        let delay = *delays.get(to.index())?;
        let exchange = Exchange::new([from, to], start, delay, air_time, &self.rules);
        let mut stations = self.stations.iter().zip(delays).enumerate();
        let quiet = |(index, (station, delay)): (usize, (&Station<P>, &Nanos))| {
            index == from.index() || station.dcf.keeps_quiet(start + delay, &self.rules)
        };
        let answers = &self.stations[to.index()].dcf;
        let certain = answers.would_answer(exchange.ends[0] + delay) && stations.all(quiet);
        certain.then_some(exchange)
    }

    /// Processes the exchange that begins at `start` up to the end of its data frame, if no event
    /// intervenes before `limit`. Returns whether the exchange was processed.
    #[inline]
    pub(super) fn pass_exchange(&mut self, start: Nanos, from: StationId, limit: Nanos) -> bool {
        // If `next_outcome` has cached this exchange, it is still valid, because any event since
        // then would have removed it from the cache.
        let foreseen = self.foreseen.take();
        debug_assert!(foreseen.is_none_or(|it| (it.start, it.from) == (start, from)));
        if !self.sees_ahead() || !self.air.transmissions.is_empty() {
            return false;
        }
        match foreseen.or_else(|| self.foresee(start, from)) {
            Some(exchange) => self.exchange(&exchange, limit),
            None => false,
        }
    }

    fn exchange(&mut self, exchange: &Exchange, limit: Nanos) -> bool {
        let (from, to) = (exchange.from.index(), exchange.to.index());
        let (Some(SingleDomain(mesh)), Some(numbered)) =
            (&self.single_domain, self.stations[from].dcf.numbered())
        else {
            return false;
        };
        let (sender, receiver) = (&mesh[from], &mesh[to]);
        let last = exchange.ends[2] + sender.farthest;
        if last >= limit {
            return false;
        }
        // Whether the ACK has also begun at all stations.
        let acknowledged = exchange.arrival() + self.rules.parameters.sifs;
        let begun = self.holding && acknowledged + receiver.farthest < limit;
        let (mut fresh, mut ack) = (false, None);
        for (index, station) in self.stations.iter_mut().enumerate() {
            let dcf = &mut station.dcf;
            if index == from {
                dcf.opens(exchange, begun, &self.rules);
                station.receiver.transmit(exchange.ends[2]);
            } else if index == to {
                fresh = dcf.answers(exchange, numbered, &self.rules);
                ack = if begun {
                    dcf.acknowledges(&self.rules)
                } else {
                    None
                };
                let sent = ack.map_or(exchange.ends[1], |ack| acknowledged + ack.air_time);
                station.receiver.transmit(sent);
            } else {
                let delays = [sender.delays[index], receiver.delays[index]];
                dcf.overhears(exchange, delays, begun, &self.rules);
            }
            self.deadlines.put(index, dcf.deadline());
        }
        self.deadlines.look();
        let listeners = mesh.len() as u64 - 1;
        // Besides the expired deadline, this counts the deadlines of CTS and DATA, and six edges at
        // each listener.
        self.events += 2 + 6 * listeners;
        self.instants += 2 + 2 * (sender.begins + sender.ends) + receiver.begins + receiver.ends;
        self.next_transmission += 3;
        self.now = last;
        if let Some(ack) = ack {
            self.events += 1 + listeners;
            self.instants += 1 + receiver.begins;
            self.now = acknowledged + receiver.farthest;
            self.next_transmission += 1;
            self.hold(self.next_transmission - 1, &ack, acknowledged);
        }
        if fresh {
            let ends = [exchange.from, exchange.to];
            self.deliver(exchange.arrival(), ends, numbered.0);
        }
        true
    }

    /// Holds a frame that has begun at all stations, if holding is allowed.
    #[inline]
    pub(super) fn hold(&mut self, id: TransmissionId, frame: &Frame, start: Nanos) -> bool {
        let Some(SingleDomain(mesh)) = self.single_domain.as_ref().filter(|_| self.holding) else {
            return false;
        };
        let reach = &mesh[frame.from.index()];
        let end = start + frame.air_time;
        self.held = Some(LoneFrame {
            id,
            frame: *frame,
            start,
            ends: (end + reach.nearest, end + reach.farthest),
        });
        true
    }

    /// Processes the end of a held frame at all stations that hear it.
    fn end(&mut self, held: &LoneFrame) {
        let from = held.frame.from.index();
        let end = held.start + held.frame.air_time;
        let mut place = 0;
        while let Some(&listener) = self.stations[from].listeners.get(place) {
            let now = end + listener.delay;
            if held.frame.kind == FrameKind::Ack && self.ack_ends(now, &held.frame, listener) {
                self.reach(now);
                self.events += 1;
            } else {
                self.ends_alone(now, listener, &held.frame);
            }
            place += 1;
        }
    }

    /// Ends a held ACK at a station. Returns whether the station was waiting for the ACK or
    /// contending.
    #[inline]
    fn ack_ends(&mut self, now: Nanos, ack: &Frame, listener: Listener) -> bool {
        let station = listener.station;
        let dcf = &mut self.stations[station.index()].dcf;
        if station == ack.to {
            let finished = dcf.hears_ack(now, &self.rules);
            if finished.is_some() {
                self.settle(now, station, finished);
            }
            return finished.is_some();
        }
        let waits = dcf.overhears_ack(now, &self.rules);
        self.deadlines.set(station.index(), dcf.deadline());
        waits
    }

    /// Releases a held frame: its end is processed edge by edge.
    #[cold]
    pub(super) fn let_go(&mut self) {
        if let Some(held) = self.held.take() {
            let begun = self.stations[held.frame.from.index()].listeners.len();
            let passed = Progress { begun, ended: 0 };
            self.put_on_air(held.id, &held.frame, held.start, passed);
        }
    }
}
