//! Sender side of stream reconfiguration: stream resets, added streams and TSN resets (RFC 6525).

use anabranch_wire::Tsn;

use super::Sender;
use super::outstanding::Outstanding;
use crate::path::Paths;

impl Sender {
    /// Defers messages that are queued for `streams` from now on, and messages without a stream;
    /// `None` means all streams.
    pub(crate) fn hold(&mut self, streams: Option<&[u16]>) {
        self.queue.hold(streams);
    }

    /// Last TSN of the messages that were queued for `streams` before the reset; `None` until all
    /// of them were sent. `are` is the number of streams that are known to be finished.
    pub(crate) fn through(&self, streams: Option<&[u16]>, are: &mut usize) -> Option<Tsn> {
        let through = self.queue.is_through(streams, are);
        through.then(|| self.outstanding.next_tsn().prev())
    }

    /// Sending progress, for [`Self::through`] and [`Self::has_acknowledged`].
    pub(crate) fn send_progress(&self) -> (Tsn, Tsn, usize) {
        let acknowledged = self.outstanding.cumulative_point();
        (
            acknowledged,
            self.outstanding.next_tsn(),
            self.queue.messages(),
        )
    }

    /// Whether no data is in flight and no data may be sent.
    pub(crate) fn is_quiet(&self) -> bool {
        self.queue.is_empty() && self.outstanding.is_empty()
    }

    /// Whether the peer has acknowledged all data up to `tsn`.
    pub(crate) fn has_acknowledged(&self, tsn: Tsn) -> bool {
        tsn.le(self.outstanding.cumulative_point())
    }

    /// Releases deferred messages. `reset`: the streams restart with stream sequence number 0.
    pub(crate) fn resume(&mut self, streams: Option<&[u16]>, reset: bool) {
        self.queue.release(streams, reset);
        self.burst.message_given = true;
    }

    /// Sets the number of outbound streams, after streams were added.
    pub(crate) fn set_streams(&mut self, streams: u16) {
        self.streams = streams;
        self.in_use.added(streams);
    }

    /// Accepts SACKs of TSNs that were not sent, because they may refer to TSNs from before a
    /// reset, or from after a reset that this side does not know of yet.
    pub(crate) fn expect_strange_sacks(&mut self) {
        self.tsns_reset = true;
    }

    /// Sets the TSN of the next chunk, while no data is outstanding. TSN numbers in traces continue
    /// without a gap.
    pub(crate) fn restart_tsns(&mut self, next: Tsn, paths: &mut Paths) {
        debug_assert!(self.outstanding.is_empty(), "the RFC's SACK would lose it");
        let sent = self.outstanding.next_tsn().distance_from(self.initial_tsn);
        self.initial_tsn = next.add(sent.wrapping_neg());
        self.outstanding = Outstanding::new(next);
        self.restart_concurrently();
        self.forget_f_rto();
        self.tsns_reset = true;
        self.gaps.clear();
        self.reneged_on = None;
        self.recovery_until = None;
        self.highest_newly_acked = None;
        self.probe = None;
        self.forward_due = false;
        if let Some(abandoning) = &mut self.pr_sctp {
            abandoning.begin_anew(next.prev());
        }
        for (_, entry) in paths.iter_mut() {
            entry.timed = None;
            entry.earliest = None;
            entry.reduction = None;
        }
    }
}
