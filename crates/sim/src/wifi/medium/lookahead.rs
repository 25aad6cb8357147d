//! Lookahead for media on which all stations hear each other.
//!
//! A station whose deadline is the earliest has the medium until the end of its data frame: RTS,
//! CTS and DATA change the stations in one step. A frame that has begun at all stations ends at all
//! of them unless a station transmits before. Until then the frame is *held*, and no receiver
//! follows it. The medium also need not be advanced before it can have an outcome:
//! [`Medium::catch_up`] processes the pending events when a packet is enqueued or an outcome is
//! due.

use anabranch_transport::Nanos;

use super::single_domain::SingleDomain;
use super::undisturbed::Progress;
use super::{Listener, Medium, Station};
use crate::wifi::dcf::{Exchange, NO_DEADLINE};
use crate::wifi::frame::{Frame, FrameKind, StationId};
use crate::wifi::phy::TransmissionId;

/// A frame that is alone on the air and has begun at all stations.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoneFrame {
    pub id: TransmissionId,
    pub frame: Frame,
    pub start: Nanos,
    /// End at the nearest and at the farthest station.
    pub ends: (Nanos, Nanos),
}

impl<P> Medium<P> {
    /// Whether the medium can look ahead beyond the next event.
    #[inline]
    pub(crate) fn sees_ahead(&self) -> bool {
        self.mesh.is_some() && self.frame_traces.is_none()
    }

    /// Whether there is an event at `now`; all events before must have been processed.
    #[inline]
    pub(crate) fn is_due(&self, now: Nanos) -> bool {
        self.earliest() <= now
    }

    /// Processes all events before `now`, except that a frame that ends later may be held. Must be
    /// called before a packet is enqueued, and at the latest at the time returned by
    /// [`next_outcome`](Self::next_outcome).
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

    /// Lower bound for the time at which the next outcome must be reported if no packet is
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

    /// Time at which the layer above has processed a packet.
    fn told(&self, arrival: Nanos) -> Nanos {
        arrival + self.rules.parameters.link_layer_delay
    }

    /// Like [`next_outcome`](Self::next_outcome), while a frame is held.
    fn after(&self, held: &LoneFrame) -> Nanos {
        let Frame { kind, from, to, .. } = held.frame;
        let [acknowledging, acknowledged] = [from, to].map(|it| &self.stations[it.index()]);
        let one_more = !acknowledging.queue.is_empty();
        // After an ACK, the stations that have a packet continue. Only the sender of the ACK has a
        // known deadline.
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

    /// Time at which the packet of the only station that has one is reported.
    fn turn(&self, station: StationId) -> Option<Nanos> {
        let dcf = &self.stations[station.index()].dcf;
        let (to, air_time) = dcf.announces()?;
        let delay = self.mesh.as_ref()?.0[station.index()].delays[to.index()];
        let ends = [station, to];
        debug_assert_ne!(
            dcf.deadline(),
            NO_DEADLINE,
            "it has a packet, and hears nobody"
        );
        let exchange = Exchange::new(ends, dcf.deadline(), delay, air_time, &self.rules);
        Some(self.told(exchange.arrival()))
    }

    /// The exchange of a station whose deadline is at `start`, if it is certain to reach its data
    /// frame.
    #[inline]
    fn foresee(&self, start: Nanos, from: StationId) -> Option<Exchange> {
        let mesh = self.mesh.as_ref()?;
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

    /// Processes the exchange that begins now up to its data frame, if no event intervenes before
    /// `limit`. Returns whether it did.
    #[inline]
    pub(super) fn pass_exchange(&mut self, start: Nanos, from: StationId, limit: Nanos) -> bool {
        // No event has occurred since the exchange was computed, or there is none.
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
            (&self.mesh, self.stations[from].dcf.numbered())
        else {
            return false;
        };
        let (sender, receiver) = (&mesh[from], &mesh[to]);
        let last = exchange.ends[2] + sender.farthest;
        if last >= limit {
            return false;
        }
        // The ACK has begun at all stations as well.
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
        // In addition to the expired deadline: those of CTS and DATA, and six edges at each
        // listener.
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
        let Some(SingleDomain(mesh)) = self.mesh.as_ref().filter(|_| self.holding) else {
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

    /// A held frame ends at all stations.
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

    /// A held ACK ends at a station. Returns whether the station waits for it or contends.
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

    /// Continues a held frame edge by edge.
    #[cold]
    pub(super) fn let_go(&mut self) {
        if let Some(held) = self.held.take() {
            let begun = self.stations[held.frame.from.index()].listeners.len();
            let passed = Progress { begun, ended: 0 };
            self.put_on_air(held.id, &held.frame, held.start, passed);
        }
    }
}
