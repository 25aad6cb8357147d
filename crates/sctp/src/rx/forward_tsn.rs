//! FORWARD TSN processing, by which the peer abandons messages (RFC 3758 §3.6).

use anabranch_transport::{Nanos, Trace};
use anabranch_wire::Tsn;
use anabranch_wire::extension::ForwardTsn;
use anabranch_wire::serial::Mid;

use super::chunk::number_of;
use super::reassembly::{AbandonedMessage, Reassembly};
use super::tsn_tracker::Arrival;
use super::{Abandoned, DataOutcome, Receiver};
use crate::work_counter;

/// Outcome of a FORWARD TSN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ForwardTsnOutcome {
    /// The cumulative TSN advanced. `aborted` are partially delivered messages that will not be
    /// completed. `streams_ignored` counts listed streams that do not exist or have already passed
    /// the given number.
    Moved {
        aborted: Vec<Abandoned>,
        streams_ignored: usize,
    },
    /// The FORWARD TSN is outdated. It is answered by a SACK.
    Behind,
    /// The new cumulative TSN is beyond the range that a SACK can report. The chunk is ignored.
    BeyondWindow,
}

/// Abandoned messages of a stream: all ordered or unordered messages up to a number.
pub(super) struct Skipped {
    pub stream: u16,
    pub unordered: bool,
    pub number: Mid,
}

/// Dropped message: its stream; its number, if the number must be skipped; and the event for the
/// user, if the message was partially delivered.
type Dropped = (u16, Option<Mid>, Option<Abandoned>);

impl Receiver {
    /// Records whether the peer may abandon messages, because both ends support partial
    /// reliability.
    pub(crate) fn expect_abandoned(&mut self, expected: bool) {
        self.reassembly.expect_abandoned(expected);
    }

    /// Processes a FORWARD TSN.
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

    /// Advances the cumulative TSN to `to` and skips the messages in `skipped`.
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
            // A nonexistent stream must not be accessed (CVE-2009-0065).
            let exists = skipped.stream < self.streams;
            if !exists || !self.skip_one(now, &skipped, &mut aborted, trace) {
                streams_ignored += 1;
            }
        }
        // The cumulative TSN may have advanced over received data.
        aborted.extend(self.drop_endless(now, trace));
        self.held.record(now, self.window.used(), trace);
        ForwardTsnOutcome::Moved {
            aborted,
            streams_ignored,
        }
    }

    /// Skips the messages of one entry. Returns `false` if the stream has already passed the
    /// number.
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

    /// Advances the cumulative TSN to `to`, the value in a FORWARD TSN. If it cannot advance,
    /// returns the reason as the outcome of the chunk.
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

    /// Drops buffered fragments of messages that will not be completed. Returns those that were
    /// partially delivered.
    pub(super) fn drop_abandoned(
        &mut self,
        now: Nanos,
        to: Tsn,
        trace: &mut Trace,
    ) -> Vec<Abandoned> {
        self.drop_pieces(now, trace, |it| it.drop_abandoned(to))
    }

    /// Drops the buffered fragments of all incomplete messages. Returns the messages that were
    /// partially delivered.
    pub(super) fn drop_all(&mut self, now: Nanos, trace: &mut Trace) -> Vec<Abandoned> {
        self.drop_pieces(now, trace, Reassembly::drop_first)
    }

    /// Drops incomplete messages whose following TSNs have arrived without a last fragment. The
    /// sender has abandoned such a message after it had sent a part of it, without sending or
    /// skipping a further TSN for it. Linux 6.1 does this, and lists the message's sequence number
    /// in an outdated FORWARD TSN. No later data can belong to these messages, and all preceding
    /// messages of their streams have arrived or were skipped. Returns those that were partially
    /// delivered.
    #[cold]
    pub(super) fn drop_endless(&mut self, now: Nanos, trace: &mut Trace) -> Vec<Abandoned> {
        let cumulative = self.tracker.cumulative();
        self.drop_pieces(now, trace, |it| it.drop_broken(cumulative))
    }

    /// Drops messages as long as `take` removes one. Returns those that were partially delivered.
    pub(super) fn drop_pieces(
        &mut self,
        now: Nanos,
        trace: &mut Trace,
        mut take: impl FnMut(&mut Reassembly) -> Option<AbandonedMessage>,
    ) -> Vec<Abandoned> {
        let mut dropped = Vec::new();
        while let Some(given_up) = take(&mut self.reassembly) {
            work_counter::count(1);
            let (stream, number) = (given_up.stream, given_up.number);
            dropped.push((stream, number, self.forget_pieces(given_up)));
        }
        self.pass_over(now, dropped, trace)
    }

    /// Outcome of a chunk that shows that a message has no first or last fragment.
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

    /// Partially delivered messages without an end, which [`DataOutcome::Aborting`] announced.
    pub(crate) fn take_aborted(&mut self) -> Vec<Abandoned> {
        self.aborted.take()
    }

    /// Releases the buffered data of a message. Returns the message if it was partially delivered.
    pub(super) fn forget_pieces(&mut self, given_up: AbandonedMessage) -> Option<Abandoned> {
        for part in given_up.payload.parts() {
            self.let_go(given_up.stream, part.len());
        }
        let head = given_up.head?;
        self.long.forget(&head);
        head.open.then_some(head)
    }

    /// Continues delivery after messages were dropped: notifies the user of partially delivered
    /// messages, and skips the numbers of the dropped messages. Must be called after all of them
    /// were dropped, so that no partial delivery of a dropped message starts.
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
        // The events about aborted messages precede the messages that were waiting for them.
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

    /// Drops the unread data of the message in partial delivery on this stream, which will not be
    /// completed. Unread data of earlier messages stays.
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
