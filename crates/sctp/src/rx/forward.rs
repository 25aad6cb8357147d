//! FORWARD TSN: the peer has given messages up (RFC 3758 §3.6).

use anabranch_transport::{Nanos, Trace};
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
        self.from = from;
        self.held.follow(trace);
        let to = forward.new_cumulative_tsn;
        match self.tracker.classify_point(to) {
            Arrival::New => {}
            Arrival::Duplicate => {
                self.sack.at_once();
                return Forwarded::Behind;
            }
            Arrival::OutOfReach => {
                self.sack.at_once();
                return Forwarded::BeyondWindow;
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
        let mut aborted = Vec::new();
        while let Some(given_up) = self.reassembly.drop_given_up(to) {
            for part in given_up.payload.parts() {
                self.let_go(given_up.stream, part.len());
            }
            let Some(head) = given_up.head else { continue };
            self.long.forget(&head);
            if head.open {
                aborted.push(Abandoned::of(&head));
                self.assembly.forget(head.stream);
                let (mut delivery, order, _) = self.delivery(now, trace);
                order.close(head.stream, |whole| delivery.whole(whole));
                self.went_on(now, head.stream, trace);
            }
        }
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
}
