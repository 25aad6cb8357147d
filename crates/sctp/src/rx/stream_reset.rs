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
        let is_meant = |it: u16| streams.is_none_or(|list| list.binary_search(&it).is_ok());
        let interleaved = self.interleaved.as_deref_mut();
        self.reassembly.unfinished(to).any(is_meant)
            || interleaved.is_some_and(|it| it.has_unfinished(to, streams))
    }

    /// These streams restart with number 0; `None` means all. None of their messages is incomplete.
    pub(crate) fn reset_streams(&mut self, now: Nanos, streams: Option<&[u16]>, trace: &mut Trace) {
        self.held.follow(trace);
        self.reset_interleaved(now, streams, trace);
        let (mut delivery, order, _) = self.delivery(now, trace);
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
        let highest = self.tracker.highest();
        let mut aborted = self.drop_abandoned(now, highest, trace);
        aborted.extend(self.drop_unfinished());
        self.reset_streams(now, None, trace);
        let received = self.tracker.cumulative().next();
        let number = received.distance_from(self.initial_tsn);
        self.initial_tsn = next.add(number.wrapping_neg());
        self.tracker = TsnTracker::new(next);
        self.refused = None;
        aborted
    }
}
