//! A whole exchange up to its data frame in one step: the effect of RTS, CTS and DATA on a station
//! if no other event intervenes.
//!
//! Each function performs in one step the transitions of the state machine for each edge.
//! Transitions that a later frame undoes are omitted, such as a slot count that starts after the
//! NAV and is interrupted before its first slot. [`SingleDomain`](crate::wifi::medium) checks the
//! conditions.

use anabranch_transport::Nanos;

use super::{Activity, Dcf, Finished, NO_DEADLINE, Rules};
use crate::wifi::frame::{Frame, FrameKind, StationId};
use crate::wifi::phy::duration_field;

/// An exchange that will reach its data frame with certainty.
#[derive(Clone, Copy, Debug)]
pub(in crate::wifi) struct Exchange {
    pub from: StationId,
    pub to: StationId,
    /// Start of its RTS.
    pub start: Nanos,
    /// End of each frame at its sender: RTS, CTS, DATA.
    pub ends: [Nanos; 3],
    /// Propagation delay between the two stations.
    pub delay: Nanos,
    /// Air time of the data frame.
    air_time: Nanos,
}

impl Exchange {
    /// The exchange for a data frame of `air_time`, starting at `start`.
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

    /// Time at which the packet has reached its receiver.
    pub fn arrival(&self) -> Nanos {
        self.ends[2] + self.delay
    }

    /// End of the silence of a station that receives the frames of `from` and `to` after these
    /// delays.
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
    /// frame that it announces.
    #[inline]
    pub(in crate::wifi) fn announces(&self) -> Option<(StationId, Nanos)> {
        let head = self.head.filter(|head| head.announced)?;
        (self.activity == Activity::Contending).then_some((head.to, head.air_time))
    }

    /// Whether a carrier at `begin` reaches the station while it contends, and early enough to
    /// prevent its transmission.
    #[inline]
    pub(in crate::wifi) fn keeps_quiet(&self, begin: Nanos, rules: &Rules) -> bool {
        self.activity == Activity::Contending
            && self.deadline > begin + rules.parameters.cca_time
            && (self.head.is_none() || self.backoff.is_counting())
    }

    /// Whether the listening station would answer an RTS that ends at `end`.
    #[inline]
    pub(in crate::wifi) fn would_answer(&self, end: Nanos) -> bool {
        self.nav_until <= end
    }

    /// The station's deadline expired, it starts the exchange, and its data frame has ended. The
    /// station detects the ACK if the ACK has begun.
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

    /// The station has sent the CTS and received the data frame, which it should acknowledge next.
    /// Returns whether the packet was not received before.
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

    /// The station starts the ACK that is due.
    pub(in crate::wifi) fn acknowledges(&mut self, rules: &Rules) -> Option<Frame> {
        let Activity::Responding(ack) = self.activity else {
            return None;
        };
        self.transmit(self.deadline, &ack, rules);
        Some(ack)
    }

    /// The station has overheard all three frames. `delays` are the propagation delays from the
    /// sender and from the receiver. The station's deadline is recomputed, or the station detects
    /// the ACK, which the NAV covers.
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

    /// An ACK for another station ends at a contending station; returns whether it is contending.
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

    /// The awaited ACK ends. If the station was waiting for it, its packet has arrived.
    #[inline]
    pub(in crate::wifi) fn hears_ack(&mut self, now: Nanos, rules: &Rules) -> Option<Finished> {
        if self.activity != Activity::Awaiting(FrameKind::Ack) {
            return None;
        }
        self.carrier_ends(now);
        self.gap = rules.timing.difs;
        self.answered(now, FrameKind::Ack, rules)
    }

    /// Sequence number of the packet being transmitted, and whether its data frame was sent before.
    pub(in crate::wifi) fn numbered(&self) -> Option<(u16, bool)> {
        self.head.map(|head| (head.sequence, head.retry))
    }
}
