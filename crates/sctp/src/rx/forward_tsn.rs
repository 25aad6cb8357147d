//! FORWARD TSN processing: the peer has abandoned messages (RFC 3758 §3.6).

use anabranch_transport::{Nanos, Trace};
use anabranch_wire::Tsn;
use anabranch_wire::extension::ForwardTsn;
use anabranch_wire::serial::Mid;

use super::chunk::number_of;
use super::reassembly::{AbandonedMessage, Reassembly};
use super::tsn_tracker::Arrival;
use super::{Abandoned, DataOutcome, Receiver};

/// Outcome of a FORWARD TSN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ForwardTsnOutcome {
    /// The cumulative TSN advanced. These partially delivered messages will not be completed. Also
    /// counts listed streams that do not exist or are past the number given.
    Moved {
        aborted: Vec<Abandoned>,
        streams_ignored: usize,
    },
    /// The FORWARD TSN is out of date. It is answered by a SACK.
    Behind,
    /// The FORWARD TSN names a TSN beyond the reportable range, and is ignored.
    BeyondWindow,
}

/// The messages of a stream and kind up to a number, which are abandoned.
pub(super) struct Skipped {
    pub stream: u16,
    pub unordered: bool,
    pub number: Mid,
}

/// A dropped message: its stream, its number if it must be skipped, and the notification if a part
/// was delivered.
type Dropped = (u16, Option<Mid>, Option<Abandoned>);

impl Receiver {
    /// Records whether the peer may abandon messages: both ends support partial reliability.
    pub(crate) fn expect_abandoned(&mut self, expected: bool) {
        self.reassembly.expect_abandoned(expected);
    }

    /// Takes a FORWARD TSN.
    pub(crate) fn handle_forward_tsn(
        &mut self,
        now: Nanos,
        forward: &ForwardTsn,
        trace: &mut Trace,
    ) -> ForwardTsnOutcome {
        let skipped = forward.skipped().map(|it| Skipped {
            stream: it.stream_id,
            unordered: false,
            number: number_of(it.ssn),
        });
        self.skip(now, forward.new_cumulative_tsn, skipped, trace)
    }

    /// Advances the cumulative TSN to `to` and passes over the `skipped` messages.
    pub(super) fn skip(
        &mut self,
        now: Nanos,
        to: Tsn,
        skipped: impl Iterator<Item = Skipped>,
        trace: &mut Trace,
    ) -> ForwardTsnOutcome {
        if let Some(refused) = self.move_point(to, trace) {
            return refused;
        }
        let mut aborted = Vec::new();
        if !self.reassembly.is_interleaved() {
            aborted = self.drop_abandoned(now, to, trace);
        }
        let mut streams_ignored = 0;
        for skipped in skipped {
            // A nonexistent stream has no order state (CVE-2009-0065).
            let exists = skipped.stream < self.streams;
            if !exists || !self.skip_one(now, &skipped, &mut aborted, trace) {
                streams_ignored += 1;
            }
        }
        // The cumulative TSN advanced over received data.
        aborted.extend(self.drop_endless(now, trace));
        self.held.record(now, self.window.used(), trace);
        ForwardTsnOutcome::Moved {
            aborted,
            streams_ignored,
        }
    }

    /// Returns false if the stream is past that message.
    fn skip_one(
        &mut self,
        now: Nanos,
        skipped: &Skipped,
        aborted: &mut Vec<Abandoned>,
        trace: &mut Trace,
    ) -> bool {
        let dropped = self.drop_skipped(now, skipped, trace);
        let is_ahead = dropped.is_some();
        aborted.extend(dropped.into_iter().flatten());
        let (stream, number) = (skipped.stream, skipped.number);
        let moved = !skipped.unordered
            && self.advance(now, stream, trace, |order, deliver| {
                order.skip(stream, number, deliver)
            });
        moved || is_ahead
    }

    /// Advances the cumulative TSN because of a chunk. Reports if it cannot.
    pub(super) fn move_point(&mut self, to: Tsn, trace: &mut Trace) -> Option<ForwardTsnOutcome> {
        self.held.follow(trace);
        match self.tracker.classify_point(to) {
            Arrival::New => {}
            Arrival::Duplicate => {
                self.sack.at_once();
                return Some(ForwardTsnOutcome::Behind);
            }
            Arrival::OutOfReach => {
                self.sack.at_once();
                return Some(ForwardTsnOutcome::BeyondWindow);
            }
        }
        let had_gaps = self.tracker.has_gaps();
        self.tracker.forward(to);
        if had_gaps && !self.tracker.has_gaps() && self.profile.sack_when_gap_fills {
            self.sack.at_once();
        } else {
            self.sack.saw_data();
        }
        self.refused = None;
        None
    }

    /// Drops buffered data of messages that will not be completed. Returns the partially delivered
    /// ones.
    pub(super) fn drop_abandoned(
        &mut self,
        now: Nanos,
        to: Tsn,
        trace: &mut Trace,
    ) -> Vec<Abandoned> {
        self.drop_pieces(now, trace, |it| it.drop_abandoned(to))
    }

    /// Drops the buffered data of all incomplete messages. Returns the partially delivered ones.
    pub(super) fn drop_all(&mut self, now: Nanos, trace: &mut Trace) -> Vec<Abandoned> {
        self.drop_pieces(now, trace, Reassembly::drop_first)
    }

    /// Drops messages without an end although the following TSNs have arrived. Their sender
    /// abandoned them after it had sent a part, and neither sent nor skipped a further TSN: Linux
    /// 6.1 does that and names the number in an outdated FORWARD TSN. No later data can belong to
    /// them, and all preceding messages of their streams have arrived or were skipped. Returns the
    /// partially delivered ones.
    #[cold]
    pub(super) fn drop_endless(&mut self, now: Nanos, trace: &mut Trace) -> Vec<Abandoned> {
        let cumulative = self.tracker.cumulative();
        self.drop_pieces(now, trace, |it| it.drop_broken(cumulative))
    }

    /// Drops the messages that `take` takes out, until there is none. Returns the partially
    /// delivered ones.
    pub(super) fn drop_pieces(
        &mut self,
        now: Nanos,
        trace: &mut Trace,
        mut take: impl FnMut(&mut Reassembly) -> Option<AbandonedMessage>,
    ) -> Vec<Abandoned> {
        let mut dropped = Vec::new();
        while let Some(given_up) = take(&mut self.reassembly) {
            let (stream, number) = (given_up.stream, given_up.number);
            dropped.push((stream, number, self.forget_pieces(given_up)));
        }
        self.pass_over(now, dropped, trace)
    }

    /// Outcome of a received chunk that shows messages without a beginning or an end.
    #[cold]
    pub(super) fn judge_broken(&mut self, now: Nanos, trace: &mut Trace) -> DataOutcome {
        if !self.reassembly.gives_up() {
            return DataOutcome::ProtocolViolation;
        }
        let aborted = self.drop_endless(now, trace);
        if aborted.is_empty() {
            return DataOutcome::NewData;
        }
        self.aborted.make().extend(aborted);
        DataOutcome::Aborting
    }

    /// Partially delivered messages that [`DataOutcome::Aborting`] reported as endless.
    pub(crate) fn take_aborted(&mut self) -> Vec<Abandoned> {
        self.aborted.take()
    }

    /// Releases the buffered data of a message. Returns the message if a part was delivered.
    pub(super) fn forget_pieces(&mut self, given_up: AbandonedMessage) -> Option<Abandoned> {
        for part in given_up.payload.parts() {
            self.let_go(given_up.stream, part.len());
        }
        let head = given_up.head?;
        self.long.forget(&head);
        head.open.then_some(head)
    }

    /// Continues after dropped messages: reports the partially delivered ones and skips the
    /// numbers. It must run after all are dropped, so that no partial delivery of an endless
    /// message starts.
    fn pass_over(
        &mut self,
        now: Nanos,
        dropped: Vec<Dropped>,
        trace: &mut Trace,
    ) -> Vec<Abandoned> {
        let aborted: Vec<_> = dropped.iter().filter_map(|it| it.2).collect();
        for message in &aborted {
            self.forget_endless(message.stream);
        }
        // The user should be notified of them before the messages that waited for them are
        // delivered.
        self.preceding = self.preceding.wrapping_add(aborted.len() as u32);
        for (stream, number, aborted) in dropped {
            if aborted.is_some() {
                self.close(now, stream, trace);
            } else if let Some(number) = number {
                self.advance(now, stream, trace, |order, deliver| {
                    order.skip(stream, number, deliver);
                    true
                });
            }
        }
        aborted
    }

    /// The message in partial delivery on this stream has no end: drops its unread data. The unread
    /// data may also contain the end of an earlier message of the stream, whose beginning stays.
    pub(super) fn forget_endless(&mut self, stream: u16) {
        let delivered = self.statistics.messages;
        let (window, held) = (&mut self.window, &mut self.held);
        let begins = self.ready.forget(stream, delivered, |readable| {
            let payload = &readable.part.payload;
            window.uncount(readable.bytes);
            window.forget(payload.len(), payload.chunks());
            held.free(stream, readable.bytes);
        });
        self.ready.tidy(delivered);
        if !begins {
            self.assembly.forget(stream);
        }
    }
}
