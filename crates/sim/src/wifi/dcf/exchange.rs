//! Processing of an exchange up to its data frame in one step: the effects of RTS, CTS and DATA on
//! a station, if no other event intervenes.
//!
//! Each function performs the state transitions of several signal edges in one step. It omits
//! transitions that a later frame undoes, such as a slot count that starts after the NAV and is
//! interrupted before its first slot. [`SingleDomain`](crate::wifi::medium) checks the
//! preconditions.

use anabranch_transport::Nanos;

use super::{Activity, Dcf, Finished, NO_DEADLINE, Rules};
use crate::wifi::frame::{Frame, FrameKind, StationId};
use crate::wifi::phy::duration_field;

/// An exchange that is certain to reach the end of its data frame.
#[derive(Clone, Copy, Debug)]
pub(in crate::wifi) struct Exchange {
    pub from: StationId,
    pub to: StationId,
    /// Start of the RTS, nanoseconds.
    pub start: Nanos,
    /// End time of each frame at its sender: RTS, CTS, DATA.
    pub ends: [Nanos; 3],
    /// Propagation delay between the two stations, nanoseconds.
    pub delay: Nanos,
    /// Air time of the data frame, nanoseconds.
    air_time: Nanos,
}

impl Exchange {
    /// Creates the exchange of a data frame of `air_time` nanoseconds that starts at `start`.
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

    /// Time at which the packet has arrived at its receiver.
    pub fn arrival(&self) -> Nanos {
        self.ends[2] + self.delay
    }

    /// End of the NAV of a station that receives the frames of `from` and `to` after these delays.
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
    /// Receiver of the RTS that is due at the station's deadline, and the air time of the data
    /// frame that it announces, nanoseconds.
    #[inline]
    pub(in crate::wifi) fn announces(&self) -> Option<(StationId, Nanos)> {
        let head = self.head.filter(|head| head.announced)?;
        (self.activity == Activity::Contending).then_some((head.to, head.air_time))
    }

    /// Whether the station is contending, and a carrier at `begin` reaches it early enough to
    /// prevent its transmission.
    #[inline]
    pub(in crate::wifi) fn keeps_quiet(&self, begin: Nanos, rules: &Rules) -> bool {
        self.activity == Activity::Contending
            && self.deadline > begin + rules.parameters.cca_time
            && (self.head.is_none() || self.backoff.is_counting())
    }

    /// Whether the station would respond to an RTS that ends at `end`.
    #[inline]
    pub(in crate::wifi) fn would_answer(&self, end: Nanos) -> bool {
        self.nav_until <= end
    }

    /// Advances the sender of an exchange from the start of its RTS to the end of its data frame.
    /// `begun` is true if the carrier of the ACK has already reached the station.
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

    /// Advances the receiver of an exchange to the end of the data frame: it has sent the CTS, and
    /// an ACK is due. Returns whether the packet was not received before.
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

    /// Starts the ACK that is due, and returns it.
    pub(in crate::wifi) fn acknowledges(&mut self, rules: &Rules) -> Option<Frame> {
        let Activity::Responding(ack) = self.activity else {
            return None;
        };
        self.transmit(self.deadline, &ack, rules);
        Some(ack)
    }

    /// Advances a station that overhears all three frames of an exchange. `delays` are the
    /// propagation delays from the sender and from the receiver. Its deadline is recomputed; if the
    /// ACK has begun, the station detects the ACK, during which the NAV is still set.
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
            self.deadline = NO_DEADLINE;
            return;
        }
        let now = exchange.ends[2] + from;
        self.carrier_ends(now);
        self.arm(now, rules);
    }

    /// Handles the end of an ACK for another station. Returns whether this station is contending.
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

    /// Handles the end of an ACK for this station. Returns the outcome of the packet, if the
    /// station was waiting for this ACK.
    #[inline]
    pub(in crate::wifi) fn hears_ack(&mut self, now: Nanos, rules: &Rules) -> Option<Finished> {
        if self.activity != Activity::Awaiting(FrameKind::Ack) {
            return None;
        }
        self.carrier_ends(now);
        self.gap = rules.timing.difs;
        self.answered(now, FrameKind::Ack, rules)
    }

    /// Sequence number of the packet being transmitted, and whether its data frame is a retry.
    pub(in crate::wifi) fn numbered(&self) -> Option<(u16, bool)> {
        self.head.map(|head| (head.sequence, head.retry))
    }
}
