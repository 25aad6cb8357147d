//! A whole exchange up to its data frame, at once: what RTS, CTS and DATA do to a station when nothing comes between.
//!
//! Each function does in one step what the state machine does edge by edge. What is left out is what a later frame undoes: a count of slots
//! that begins behind the NAV and is interrupted before its first slot, say. [`Mesh`](crate::wifi::medium) has the conditions.

use anabranch_transport::Nanos;

use super::{Activity, Dcf, Finished, NEVER, Rules};
use crate::wifi::frame::{Frame, FrameKind, StationId};
use crate::wifi::phy::duration_field;

/// An exchange that is certain to come as far as its data frame.
#[derive(Clone, Copy, Debug)]
pub(in crate::wifi) struct Exchange {
    pub from: StationId,
    pub to: StationId,
    /// When its RTS begins.
    pub start: Nanos,
    /// When each frame has ended at its sender: RTS, CTS, DATA.
    pub ends: [Nanos; 3],
    /// The delay between the two.
    pub delay: Nanos,
    /// How long the data frame lasts.
    air_time: Nanos,
}

impl Exchange {
    /// The exchange for a data frame that lasts `air_time`, announced at `start`.
    pub fn new(
        [from, to]: [StationId; 2],
        start: Nanos,
        delay: Nanos,
        air_time: Nanos,
        rules: &Rules,
    ) -> Self {
        let turn = delay + rules.parameters.sifs;
        let announced = start + rules.timing.rts;
        let cleared = announced + turn + rules.timing.cts;
        Self {
            from,
            to,
            start,
            ends: [announced, cleared, cleared + turn + air_time],
            delay,
            air_time,
        }
    }

    /// When the packet has reached its receiver.
    pub fn arrival(&self) -> Nanos {
        self.ends[2] + self.delay
    }

    /// Until when a station that hears the frames after these delays, those of `from` and that of `to`, keeps silent.
    fn reserved(&self, [from, to]: [Nanos; 2], rules: &Rules) -> Nanos {
        let sifs = rules.parameters.sifs;
        let (cts, ack) = (rules.timing.cts, rules.timing.ack);
        let by_rts = duration_field(3 * sifs + cts + self.air_time + ack);
        let by_cts = duration_field(by_rts - (sifs + cts));
        let by_data = duration_field(sifs + ack);
        let by_sender = (self.ends[0] + by_rts).max(self.ends[2] + by_data);
        (by_sender + from).max(self.ends[1] + to + by_cts)
    }
}

impl Dcf {
    /// Whom an RTS at the station's deadline would be for, and how long the data frame lasts that it announces.
    #[inline]
    pub(in crate::wifi) fn announces(&self) -> Option<(StationId, Nanos)> {
        let head = self.head.filter(|head| head.announced)?;
        (self.activity == Activity::Contending).then_some((head.to, head.air_time))
    }

    /// Whether a carrier at `begin` finds the station waiting, and in time to keep it from transmitting.
    #[inline]
    pub(in crate::wifi) fn keeps_quiet(&self, begin: Nanos, rules: &Rules) -> bool {
        self.activity == Activity::Contending
            && self.deadline > begin + rules.parameters.cca_time
            && (self.head.is_none() || self.backoff.is_counting())
    }

    /// Whether the station, which listens, would answer an RTS that ends at `end`.
    #[inline]
    pub(in crate::wifi) fn would_answer(&self, end: Nanos) -> bool {
        self.nav_until <= end
    }

    /// The station, whose deadline has come, opens the exchange, and its data frame has ended; it hears the ACK begin, if that has begun.
    pub(in crate::wifi) fn opens(&mut self, exchange: &Exchange, begun: bool, rules: &Rules) {
        let [.., end] = exchange.ends;
        self.backoff.clear();
        self.stats.rts_sent += 1;
        self.stats.data_sent += 1;
        self.stats.retries += u64::from(self.head.is_some_and(|head| head.retry));
        self.short_retries = 0;
        self.transmitting_until = end;
        self.hold_until = self.hold_until.max(end + rules.timing.difs);
        self.carrier = begun;
        self.idle_since = exchange.ends[1] + exchange.delay;
        self.gap = rules.timing.difs;
        self.activity = Activity::Awaiting(FrameKind::Ack);
        self.deadline = end + rules.timing.ack_timeout;
    }

    /// The station has answered, and received the data frame, which it acknowledges next. Returns whether that brings a packet
    /// not had before.
    pub(in crate::wifi) fn answers(
        &mut self,
        exchange: &Exchange,
        (sequence, retry): (u16, bool),
        rules: &Rules,
    ) -> bool {
        self.carrier_begins(exchange.start + exchange.delay, rules);
        let [_, sent, _] = exchange.ends;
        self.stats.cts_sent += 1;
        self.transmitting_until = sent;
        self.hold_until = self.hold_until.max(sent + rules.timing.difs);
        self.backoff.stop();
        let now = exchange.arrival();
        self.carrier_ends(now);
        let data = Frame {
            kind: FrameKind::Data,
            from: exchange.from,
            to: exchange.to,
            air_time: 0,
            duration: 0,
            sequence,
            retry,
        };
        self.addressed(now, &data, rules)
    }

    /// The station begins the ACK that it owes.
    pub(in crate::wifi) fn acknowledges(&mut self, rules: &Rules) -> Option<Frame> {
        let Activity::Responding(ack) = self.activity else {
            return None;
        };
        self.transmit(self.deadline, &ack, rules);
        Some(ack)
    }

    /// The station has heard all three frames, which are not for it, after these delays: those of the sender, and that of the
    /// receiver. Its deadline is worked out anew, or it hears the ACK begin, which the NAV covers.
    pub(in crate::wifi) fn overhears(
        &mut self,
        exchange: &Exchange,
        delays: [Nanos; 2],
        begun: bool,
        rules: &Rules,
    ) {
        let [from, _] = delays;
        self.carrier_begins(exchange.start + from, rules);
        self.nav_until = self.nav_until.max(exchange.reserved(delays, rules));
        self.backoff.stop();
        if begun {
            self.deadline = NEVER;
            return;
        }
        let now = exchange.ends[2] + from;
        self.carrier_ends(now);
        self.arm(now, rules);
    }

    /// An ACK for another station ends at one that waits for its turn; whether it does.
    #[inline]
    pub(in crate::wifi) fn overhears_ack(&mut self, now: Nanos, rules: &Rules) -> bool {
        if self.activity != Activity::Contending {
            return false;
        }
        self.carrier_ends(now);
        self.gap = rules.timing.difs;
        self.nav_until = self.nav_until.max(now);
        self.arm(now, rules);
        true
    }

    /// The ACK that the station waits for ends; its packet has arrived, if it does.
    #[inline]
    pub(in crate::wifi) fn hears_ack(&mut self, now: Nanos, rules: &Rules) -> Option<Finished> {
        if self.activity != Activity::Awaiting(FrameKind::Ack) {
            return None;
        }
        self.carrier_ends(now);
        self.gap = rules.timing.difs;
        self.answered(now, FrameKind::Ack, rules)
    }

    /// Sequence number of the packet on its way, and whether its data frame was sent before.
    pub(in crate::wifi) fn numbered(&self) -> Option<(u16, bool)> {
        self.head.map(|head| (head.sequence, head.retry))
    }
}
