//! Distributed coordination function: the state machine of one station (IEEE 802.11-1999 §9.2).
//!
//! The medium passes it the events of the station's receiver and the expiry of its deadline; the
//! state machine returns frames to transmit. The state machine has no access to other stations and
//! packets; the [`Medium`](super::Medium) transports the frames.

mod exchange;

use anabranch_transport::Nanos;
use rand_pcg::Pcg32;

use super::backoff::{Backoff, Interrupted};
use super::frame::{Frame, FrameKind, StationId};
use super::medium_counts::{StationStats, WifiDropReason};
use super::parameters::{AfterError, IdleAccess, WifiParameters};
use super::phy::{PhyTiming, duration_field};

pub(super) use exchange::Exchange;

/// Value of a deadline that is not set.
pub(super) const NO_DEADLINE: Nanos = Nanos::MAX;

/// Parameters of the medium, and the times derived from them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) parameters: WifiParameters,
    pub(super) timing: PhyTiming,
}

/// State of a station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Activity {
    /// Listening, and contending for the medium if the station has a packet.
    Contending,
    /// Waiting for SIFS to transmit this response, regardless of the medium (§9.2.8).
    Responding(Frame),
    /// Transmitting an RTS or a data frame, or waiting for the CTS or ACK that follows it.
    Awaiting(FrameKind),
    /// Receiving a frame that may be the response, although the timeout has already expired.
    AwaitingEnd(FrameKind),
}

/// The state machine's record of the packet being transmitted.
#[derive(Clone, Copy, Debug)]
struct Outgoing {
    to: StationId,
    air_time: Nanos,
    sequence: u16,
    announced: bool,
    retry: bool,
}

/// Final outcome of the packet being transmitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finished {
    /// The ACK arrived.
    Confirmed,
    /// The retry limit was reached.
    GivenUp(WifiDropReason),
}

/// Action of a station when its deadline expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expired {
    /// The station transmits this frame.
    Transmit(Frame),
    /// A transmission attempt failed; `Some` if it was the last attempt for the packet.
    Failed(Option<Finished>),
    /// The station transmits nothing now: it waits for the end of the frame that it is receiving,
    /// or has no packet.
    Waiting,
}

/// Effects of a decoded frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Decoded {
    /// Whether the frame carries a packet that this station has not received before.
    pub(super) fresh: bool,
    /// Outcome of the packet that this station is transmitting, if the frame completed it.
    pub(super) finished: Option<Finished>,
}

/// Medium access control of one station.
#[derive(Clone, Debug)]
pub(super) struct Dcf {
    me: StationId,
    activity: Activity,
    head: Option<Outgoing>,
    backoff: Backoff,
    short_retries: u32,
    long_retries: u32,
    next_sequence: u16,
    /// Last sequence number received from each station; `None` before the first.
    last_heard: Vec<Option<u16>>,
    carrier: bool,
    idle_since: Nanos,
    /// Required idle time after `idle_since`: DIFS, or EIFS after an error.
    gap: Nanos,
    nav_until: Nanos,
    /// Time before which no slot is counted: DIFS after this station's own transmissions and
    /// timeouts.
    hold_until: Nanos,
    transmitting_until: Nanos,
    deadline: Nanos,
    pub(super) stats: StationStats,
}

impl Dcf {
    pub(super) fn new(me: StationId, rules: &Rules, rng: Pcg32) -> Self {
        Self {
            me,
            activity: Activity::Contending,
            head: None,
            backoff: Backoff::new(&rules.parameters, rng),
            short_retries: 0,
            long_retries: 0,
            next_sequence: 0,
            last_heard: Vec::new(),
            carrier: false,
            idle_since: 0,
            gap: rules.timing.difs,
            nav_until: 0,
            hold_until: 0,
            transmitting_until: 0,
            deadline: NO_DEADLINE,
            stats: StationStats::default(),
        }
    }

    /// Time at which [`expire`](Self::expire) must be called.
    pub(super) fn deadline(&self) -> Nanos {
        self.deadline
    }

    /// Sequence number of the packet being transmitted.
    pub(super) fn sequence_on_its_way(&self) -> Option<u16> {
        self.head.map(|head| head.sequence)
    }

    /// Sets the next packet to transmit, of `bytes` bytes to `to`. No other packet may be in
    /// transmission, and the caller must call [`arm`](Self::arm) afterwards.
    pub(super) fn offer(&mut self, now: Nanos, to: StationId, bytes: u32, rules: &Rules) {
        let Rules { parameters, timing } = rules;
        self.head = Some(Outgoing {
            to,
            air_time: timing.data(parameters, bytes),
            sequence: self.next_sequence,
            announced: bytes + parameters.data_overhead > parameters.rts_threshold,
            retry: false,
        });
        self.next_sequence = (self.next_sequence + 1) % 4096;
        if self.backoff.in_progress(now, parameters) {
            return;
        }
        self.backoff.clear();
        let idle = self.activity == Activity::Contending
            && !self.carrier
            && self.nav_until <= now
            && self.transmitting_until <= now;
        if idle && parameters.idle_access == IdleAccess::Backoff {
            self.hold_until = self.hold_until.max(now + timing.difs);
        }
        if !idle || parameters.idle_access == IdleAccess::Backoff {
            self.backoff.draw(parameters);
        }
    }

    /// Recomputes the deadline. The caller must call it after every method except
    /// [`carrier_begins`](Self::carrier_begins).
    pub(super) fn arm(&mut self, now: Nanos, rules: &Rules) {
        if self.activity != Activity::Contending {
            return;
        }
        self.deadline = NO_DEADLINE;
        if self.carrier {
            return;
        }
        let difs = rules.timing.difs;
        let from = (self.idle_since + self.gap)
            .max(self.nav_until + difs)
            .max(self.hold_until);
        let over = self.backoff.count_from(from, &rules.parameters);
        if self.head.is_some() {
            self.deadline = over.max(now);
        }
    }

    /// Handles a signal that reaches the antenna while no other signal is present.
    pub(super) fn carrier_begins(&mut self, now: Nanos, rules: &Rules) {
        self.carrier = true;
        self.gap = rules.timing.difs;
        if self.activity != Activity::Contending {
            return;
        }
        let pending = self.head.is_some();
        if self.backoff.interrupt(now, pending, &rules.parameters) != Interrupted::Frozen {
            return;
        }
        if pending && !self.backoff.is_drawn() {
            // The station would have transmitted without a backoff after DIFS, but the medium did
            // not stay idle for this time (§9.2.5.1).
            self.backoff.draw(&rules.parameters);
        }
        self.deadline = NO_DEADLINE;
    }

    /// Handles the end of the last signal at the antenna. The caller must report the result of the
    /// frame before this call, and call [`arm`](Self::arm) afterwards.
    pub(super) fn carrier_ends(&mut self, now: Nanos) {
        self.carrier = false;
        self.idle_since = now;
    }

    /// Handles the expiry of the deadline. `following`: the receiver is currently receiving a
    /// frame.
    pub(super) fn expire(&mut self, now: Nanos, following: bool, rules: &Rules) -> Expired {
        match self.activity {
            Activity::Contending => match self.head {
                Some(head) => Expired::Transmit(self.open(now, head, rules)),
                None => {
                    self.deadline = NO_DEADLINE;
                    Expired::Waiting
                }
            },
            Activity::Responding(frame) => {
                self.transmit(now, &frame, rules);
                Expired::Transmit(frame)
            }
            Activity::Awaiting(kind) if following => {
                self.activity = Activity::AwaitingEnd(kind);
                self.deadline = NO_DEADLINE;
                Expired::Waiting
            }
            Activity::Awaiting(_) | Activity::AwaitingEnd(_) => {
                Expired::Failed(self.fail(now, rules))
            }
        }
    }

    /// Handles a decoded frame that ends at `now`.
    pub(super) fn decoded(&mut self, now: Nanos, frame: &Frame, rules: &Rules) -> Decoded {
        self.gap = rules.timing.difs; // an earlier error no longer counts (§9.2.3.4)
        let mine = frame.to == self.me;
        if !mine {
            self.nav_until = self.nav_until.max(now + frame.duration);
        }
        let mut outcome = Decoded::default();
        if let Activity::Awaiting(kind) | Activity::AwaitingEnd(kind) = self.activity {
            if mine && frame.kind == kind {
                outcome.finished = self.answered(now, kind, rules);
                return outcome;
            }
            // Any other frame at this time means that the response is missing (§9.2.8).
            outcome.finished = self.fail(now, rules);
        }
        if mine && self.activity == Activity::Contending {
            outcome.fresh = self.addressed(now, frame, rules);
        }
        outcome
    }

    /// Handles a frame that ends at `now` and was detected but not decoded.
    pub(super) fn spoiled(&mut self, now: Nanos, rules: &Rules) {
        self.stats.spoiled += 1;
        match rules.parameters.after_error {
            AfterError::EifsInsteadOfDifs => self.gap = rules.timing.eifs,
            AfterError::EifsThenDifs => {
                self.nav_until = self.nav_until.max(now + rules.timing.eifs)
            }
        }
    }

    /// Handles the end of reception without a decoded frame: a response that was still possible
    /// will not arrive.
    pub(super) fn nothing_followed(&mut self, now: Nanos, rules: &Rules) -> Option<Finished> {
        match self.activity {
            Activity::AwaitingEnd(_) => self.fail(now, rules),
            _ => None,
        }
    }

    /// Starts a frame exchange for the packet. Returns its first frame, an RTS or the data frame.
    fn open(&mut self, now: Nanos, head: Outgoing, rules: &Rules) -> Frame {
        let PhyTiming { rts, cts, ack, .. } = rules.timing;
        let sifs = rules.parameters.sifs;
        self.backoff.clear();
        let frame = if head.announced {
            let rest = 3 * sifs + cts + head.air_time + ack;
            Frame {
                kind: FrameKind::Rts,
                from: self.me,
                to: head.to,
                air_time: rts,
                duration: duration_field(rest),
                sequence: 0,
                retry: false,
            }
        } else {
            self.data_frame(head, rules)
        };
        self.transmit(now, &frame, rules);
        frame
    }

    fn data_frame(&self, head: Outgoing, rules: &Rules) -> Frame {
        Frame {
            kind: FrameKind::Data,
            from: self.me,
            to: head.to,
            air_time: head.air_time,
            duration: duration_field(rules.parameters.sifs + rules.timing.ack),
            sequence: head.sequence,
            retry: head.retry,
        }
    }

    /// Sets the state of the station whose transmission of `frame` starts now.
    fn transmit(&mut self, now: Nanos, frame: &Frame, rules: &Rules) {
        let PhyTiming {
            difs,
            cts_timeout,
            ack_timeout,
            ..
        } = rules.timing;
        let end = now + frame.air_time;
        self.transmitting_until = end;
        self.hold_until = self.hold_until.max(end + difs);
        self.stats.transmitted(frame);
        let awaited = match frame.kind {
            FrameKind::Rts => Some((FrameKind::Cts, cts_timeout)),
            FrameKind::Data => Some((FrameKind::Ack, ack_timeout)),
            FrameKind::Cts | FrameKind::Ack => None,
        };
        match awaited {
            Some((kind, timeout)) => {
                self.activity = Activity::Awaiting(kind);
                self.deadline = end + timeout;
            }
            None => {
                self.activity = Activity::Contending;
                self.backoff.stop();
                self.arm(now, rules);
            }
        }
    }

    /// Handles the arrival of the awaited response.
    fn answered(&mut self, now: Nanos, kind: FrameKind, rules: &Rules) -> Option<Finished> {
        if kind == FrameKind::Cts {
            self.short_retries = 0;
            if let Some(head) = self.head {
                self.respond(now, self.data_frame(head, rules), rules);
            }
            return None;
        }
        self.stats.confirmed += 1;
        self.finish(now, Finished::Confirmed, rules)
    }

    /// Handles a missing response (§9.2.5.3).
    fn fail(&mut self, now: Nanos, rules: &Rules) -> Option<Finished> {
        let parameters = &rules.parameters;
        let rts_failed = matches!(
            self.activity,
            Activity::Awaiting(FrameKind::Cts) | Activity::AwaitingEnd(FrameKind::Cts)
        );
        self.activity = Activity::Contending;
        let head = self.head.as_mut()?;
        let long = head.announced && !rts_failed;
        if rts_failed {
            self.stats.cts_missing += 1;
        } else {
            self.stats.ack_missing += 1;
            head.retry = true;
        }
        let (count, limit, reason) = if long {
            (
                &mut self.long_retries,
                parameters.long_retry_limit,
                WifiDropReason::LongRetryLimit,
            )
        } else {
            (
                &mut self.short_retries,
                parameters.short_retry_limit,
                WifiDropReason::ShortRetryLimit,
            )
        };
        *count += 1;
        if *count >= limit {
            return self.finish(now, Finished::GivenUp(reason), rules);
        }
        self.backoff.widen(parameters);
        self.contend_again(now, rules);
        None
    }

    /// Ends the transmission of the packet. A backoff follows whether or not there is another
    /// packet (§9.2.5.2).
    fn finish(&mut self, now: Nanos, finished: Finished, rules: &Rules) -> Option<Finished> {
        self.activity = Activity::Contending;
        self.head = None;
        self.short_retries = 0;
        self.long_retries = 0;
        self.backoff.reset(&rules.parameters);
        self.contend_again(now, rules);
        Some(finished)
    }

    fn contend_again(&mut self, now: Nanos, rules: &Rules) {
        self.backoff.draw(&rules.parameters);
        self.hold_until = self.hold_until.max(now + rules.timing.difs);
    }

    /// Handles a frame that is addressed to this station, which is free to respond. Returns whether
    /// the frame carries a packet that was not received before.
    fn addressed(&mut self, now: Nanos, frame: &Frame, rules: &Rules) -> bool {
        let PhyTiming { cts, ack, .. } = rules.timing;
        let answer = |kind, air_time, duration| Frame {
            kind,
            from: frame.to,
            to: frame.from,
            air_time,
            duration,
            sequence: 0,
            retry: false,
        };
        match frame.kind {
            FrameKind::Data => {
                self.respond(now, answer(FrameKind::Ack, ack, 0), rules);
                self.is_fresh(frame)
            }
            // §9.2.5.7: a station must not send a CTS while its NAV reserves the medium for another
            // station.
            FrameKind::Rts if self.nav_until <= now => {
                let rest = frame.duration.saturating_sub(rules.parameters.sifs + cts);
                self.respond(
                    now,
                    answer(FrameKind::Cts, cts, duration_field(rest)),
                    rules,
                );
                false
            }
            FrameKind::Rts | FrameKind::Cts | FrameKind::Ack => false,
        }
    }

    fn respond(&mut self, now: Nanos, frame: Frame, rules: &Rules) {
        self.activity = Activity::Responding(frame);
        self.deadline = now + rules.parameters.sifs;
    }

    /// Whether a data frame differs from the previous one of its sender, so that it is not a retry
    /// (§9.2.9).
    fn is_fresh(&mut self, frame: &Frame) -> bool {
        let index = frame.from.index();
        if self.last_heard.len() <= index {
            self.last_heard.resize(index + 1, None);
        }
        let repeated = frame.retry && self.last_heard[index] == Some(frame.sequence);
        self.last_heard[index] = Some(frame.sequence);
        self.stats.duplicates += u64::from(repeated);
        !repeated
    }
}
