//! Receiver side of stream reconfiguration: stream resets, added streams and TSN resets (RFC 6525).

use anabranch_transport::{Nanos, Trace};
use anabranch_wire::Tsn;

use super::tsn_tracker::TsnTracker;
use super::{Abandoned, Receiver};

impl Receiver {
    /// Number of inbound streams.
    pub(crate) fn streams(&self) -> u16 {
        self.streams
    }

    /// Sets the number of inbound streams, after the peer has added streams.
    pub(crate) fn set_streams(&mut self, streams: u16) {
        self.streams = streams;
    }

    /// Whether a message of these streams (`None`: of any stream) whose first TSN is at most `to`
    /// is incomplete.
    pub(crate) fn has_unfinished(&mut self, to: Tsn, streams: Option<&[u16]>) -> bool {
        self.reassembly.has_unfinished(to, streams)
    }

    /// Restarts the numbers of ordered and unordered messages of these streams at 0; `None` means
    /// all streams (RFC 8260 §2.3.2). The caller has checked that no message is incomplete.
    /// Buffered messages are delivered, because the peer has left out the messages before them.
    pub(crate) fn reset_streams(&mut self, now: Nanos, streams: Option<&[u16]>, trace: &mut Trace) {
        self.held.follow(trace);
        if let Some(abandoned) = &mut self.abandoned {
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

    /// Sets the next expected TSN to `next`, and restarts all streams. Returns partially delivered
    /// messages, which can no longer be completed.
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
