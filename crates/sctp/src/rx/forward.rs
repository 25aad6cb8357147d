//! FORWARD TSN: the peer has given messages up (RFC 3758 §3.6).

use anabranch_transport::{Nanos, Trace};
use anabranch_wire::Tsn;
use anabranch_wire::extension::ForwardTsn;

use super::tsn_tracker::Arrival;
use super::{Abandoned, Receiver};
use crate::path::PathId;

/// What became of a FORWARD TSN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Forwarded {
    /// The cumulative point moved. These messages, of which a part was delivered, will not be delivered to their end; so many streams
    /// that it lists do not exist, or are past the number given.
    Moved {
        aborted: Vec<Abandoned>,
        streams_ignored: usize,
    },
    /// It is out of date: a SACK answers it.
    Behind,
    /// It names a TSN that could not be reported: not taken.
    BeyondWindow,
}

impl Receiver {
    /// Whether the peer may give messages up: both ends speak partial reliability.
    pub(crate) fn expect_abandoned(&mut self, expected: bool) {
        self.reassembly.expect_abandoned(expected);
    }

    /// Takes a FORWARD TSN that came on path `from`.
    pub(crate) fn handle_forward_tsn(
        &mut self,
        now: Nanos,
        forward: &ForwardTsn,
        from: PathId,
        trace: &mut Trace,
    ) -> Forwarded {
        let to = forward.new_cumulative_tsn;
        if let Some(refused) = self.move_point(to, from, trace) {
            return refused;
        }
        let aborted = self.drop_given_up(now, to, trace);
        let mut streams_ignored = 0;
        for skipped in forward.skipped() {
            let stream = skipped.stream_id;
            // One that does not exist has no order (CVE-2009-0065).
            let exists = stream < self.streams;
            let (mut delivery, order, _) = self.delivery(now, trace);
            if exists && order.skip(stream, skipped.ssn, |whole| delivery.whole(whole)) {
                self.went_on(now, stream, trace);
            } else {
                streams_ignored += 1;
            }
        }
        self.held.record(now, self.window.used(), trace);
        Forwarded::Moved {
            aborted,
            streams_ignored,
        }
    }
    /// Moves the cumulative point to what came on path `from`; says so if it cannot be.
    pub(super) fn move_point(
        &mut self,
        to: Tsn,
        from: PathId,
        trace: &mut Trace,
    ) -> Option<Forwarded> {
        self.from = from;
        self.held.follow(trace);
        match self.tracker.classify_point(to) {
            Arrival::New => {}
            Arrival::Duplicate => {
                self.sack.at_once();
                return Some(Forwarded::Behind);
            }
            Arrival::OutOfReach => {
                self.sack.at_once();
                return Some(Forwarded::BeyondWindow);
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

    /// Drops what is held of messages that will not become whole. Gives those of which a part was delivered.
    pub(super) fn drop_given_up(
        &mut self,
        now: Nanos,
        to: Tsn,
        trace: &mut Trace,
    ) -> Vec<Abandoned> {
        let mut aborted = Vec::new();
        while let Some(given_up) = self.reassembly.drop_given_up(to) {
            for part in given_up.payload.parts() {
                self.let_go(given_up.stream, part.len());
            }
            if let Some(head) = given_up.head {
                self.long.forget(&head);
                aborted.extend(head.open.then(|| Abandoned::of(&head)));
            }
        }
        if !aborted.is_empty() {
            self.forget_endless(aborted.iter().map(|it| it.stream).collect());
        }
        // Only now: none of those begins to be delivered that have no end.
        for Abandoned { stream, .. } in &aborted {
            let (mut delivery, order, _) = self.delivery(now, trace);
            order.close(*stream, |whole| delivery.whole(whole));
            self.went_on(now, *stream, trace);
        }
        aborted
    }

    /// The messages that are being delivered on these streams have no end: forgets what of them was not read. What the user has
    /// not read may hold the end of an earlier message of the stream, and its beginning stays.
    pub(super) fn forget_endless(&mut self, mut streams: Vec<u16>) {
        let ready: Vec<_> = self.ready.drain(..).collect();
        for readable in ready.into_iter().rev() {
            let Some(at) = streams.iter().position(|it| *it == readable.part.stream) else {
                self.ready.push_front(readable);
                continue;
            };
            if readable.part.begins || readable.part.ends {
                streams.swap_remove(at);
            }
            if readable.part.ends {
                self.ready.push_front(readable);
                continue;
            }
            let payload = &readable.part.payload;
            let (length, chunks) = (payload.len(), payload.chunks());
            self.window.uncount(readable.bytes);
            self.window.forget(length, chunks);
            self.held.free(readable.part.stream, readable.bytes);
        }
        for stream in streams {
            self.assembly.forget(stream);
        }
    }
}
