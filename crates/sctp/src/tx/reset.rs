//! What reconfiguration does to the sender: streams that begin anew, streams that are added, TSNs that begin anew (RFC 6525).

use anabranch_wire::Tsn;

use super::Sender;
use super::outstanding::Outstanding;
use crate::path::Paths;

impl Sender {
    /// What is given for `streams` from now on waits, and so does all without a stream; `None`: for any stream.
    pub(crate) fn hold(&mut self, streams: Option<&[u16]>) {
        self.queue.hold(streams);
    }

    /// The TSN up to which all was sent that had been given for `streams` before they were held, once it was sent; so many of these `are` through,
    /// as is known.
    pub(crate) fn through(&self, streams: Option<&[u16]>, are: &mut usize) -> Option<Tsn> {
        let through = self.queue.is_through(streams, are);
        through.then(|| self.outstanding.next_tsn().prev())
    }

    /// How far sending has come, for [`Self::through`] and [`Self::has_acknowledged`].
    pub(crate) fn course(&self) -> (Tsn, Tsn, usize) {
        let acknowledged = self.outstanding.cumulative_point();
        (
            acknowledged,
            self.outstanding.next_tsn(),
            self.queue.messages(),
        )
    }

    /// Whether nothing is in flight, and nothing may be sent.
    pub(crate) fn is_quiet(&self) -> bool {
        self.queue.is_empty() && self.outstanding.is_empty()
    }

    /// Whether the peer has acknowledged all up to `tsn`.
    pub(crate) fn has_acknowledged(&self, tsn: Tsn) -> bool {
        tsn.le(self.outstanding.cumulative_point())
    }

    /// What was held goes its way. `reset`: the streams begin anew with number 0.
    pub(crate) fn resume(&mut self, streams: Option<&[u16]>, reset: bool) {
        self.queue.release(streams, reset);
        self.burst.message_given = true;
    }

    /// Streams were added, so that there are so many.
    pub(crate) fn set_streams(&mut self, streams: u16) {
        self.streams = streams;
        self.in_use.added(streams);
    }

    /// An acknowledgement of what was not sent is from before a reset, or from after one that is not known of here yet.
    pub(crate) fn expect_strange_sacks(&mut self) {
        self.begun_anew = true;
    }

    /// The next chunk has the TSN `next`. Nothing is outstanding. Numbers in series go on as if nothing had been.
    pub(crate) fn restart_tsns(&mut self, next: Tsn, paths: &mut Paths) {
        debug_assert!(self.outstanding.is_empty(), "the RFC's SACK would lose it");
        let sent = self.outstanding.next_tsn().distance_from(self.initial_tsn);
        self.initial_tsn = next.add(sent.wrapping_neg());
        self.outstanding = Outstanding::new(next);
        self.begin_anew_concurrently();
        self.forget_forward();
        self.begun_anew = true;
        self.gaps.clear();
        self.withdrawn_on = None;
        self.recovery_until = None;
        self.highest_newly_acked = None;
        self.probe = None;
        self.forward_due = false;
        if let Some(abandoning) = &mut self.abandoning {
            abandoning.begin_anew(next.prev());
        }
        for (_, entry) in paths.iter_mut() {
            entry.timed = None;
            entry.earliest = None;
            entry.reduction = None;
        }
    }
}
