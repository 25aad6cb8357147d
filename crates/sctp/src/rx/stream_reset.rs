//! Receiver side of stream reconfiguration: stream resets, added streams and TSN resets (RFC 6525).

use anabranch_transport::{Nanos, Trace};
use anabranch_wire::Tsn;

use super::tsn_tracker::TsnTracker;
use super::{Abandoned, Receiver};

impl Receiver {
    /// Number of streams on which the peer may send.
    pub(crate) fn streams(&self) -> u16 {
        self.streams
    }

    /// Sets the number of streams after some were added.
    pub(crate) fn set_streams(&mut self, streams: u16) {
        self.streams = streams;
    }

    /// Whether a message of these streams (`None`: of any) that began no later than `to` is
    /// incomplete.
    pub(crate) fn has_unfinished(&mut self, to: Tsn, streams: Option<&[u16]>) -> bool {
        self.reassembly.has_unfinished(to, streams)
    }

    /// These streams restart with number 0, ordered and unordered; `None` means all (RFC 8260
    /// §2.3.2). None of their messages is incomplete. Messages that wait for messages that the peer
    /// left out are delivered.
    pub(crate) fn reset_streams(&mut self, now: Nanos, streams: Option<&[u16]>, trace: &mut Trace) {
        self.held.follow(trace);
        if let Some(abandoned) = &mut self.interleaved {
            abandoned.restart(streams);
        }
        let (mut delivery, order) = self.delivery(now, trace);
        match streams {
            Some(streams) => {
                for &stream in streams {
                    order.reset(stream, |whole| delivery.whole(whole));
                }
            }
            None => order.reset_all(|whole| delivery.whole(whole)),
        }
    }

    /// The next chunk has the TSN `next`, and all streams restart. Returns the partially delivered
    /// messages, which have no end now.
    pub(crate) fn restart_tsns(
        &mut self,
        now: Nanos,
        next: Tsn,
        trace: &mut Trace,
    ) -> Vec<Abandoned> {
        self.held.follow(trace);
        let aborted = self.drop_all(now, trace);
        self.reset_streams(now, None, trace);
        let received = self.tracker.cumulative().next();
        let number = received.distance_from(self.initial_tsn);
        self.initial_tsn = next.add(number.wrapping_neg());
        self.tracker = TsnTracker::new(next);
        self.refused = None;
        aborted
    }
}
