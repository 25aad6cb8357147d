//! Sender response to ECN marks: cwnd is reduced once per window of data and destination (RFC 4960
//! Appendix A, RFC 3168 §6.1.2).

use anabranch_transport::{Nanos, Probe, Trace};
use anabranch_wire::Tsn;

use super::{Sender, trace_window, window};
use crate::path::{CongestionEvent, PathId, Paths};

/// Maximum age of a TSN in an ECNE: its distance from the next new TSN. Older TSNs were already
/// answered, or were never sent.
const MAX_AGO: u32 = 1 << 16;

/// Outcome of an ECNE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// The TSN in the ECNE was never sent, or was sent too long ago.
    Impossible,
    /// cwnd was reduced because of this ECNE, now or earlier, so a CWR must be sent.
    Answered,
}

impl Sender {
    /// Processes an ECNE of the peer, which reports that the packet with `tsn` was marked.
    pub(crate) fn handle_ecne(
        &mut self,
        now: Nanos,
        tsn: Tsn,
        paths: &mut Paths,
        trace: &mut Trace,
    ) -> Heard {
        let ago = self.outstanding.next_tsn().distance_from(tsn);
        if ago == 0 || ago > MAX_AGO || u64::from(ago) > self.statistics.chunks_sent {
            return Heard::Impossible;
        }
        // The SACK in the same packet must not increase cwnd.
        self.echoed = true;
        let chunk = self.outstanding.get(tsn);
        let id = chunk.map_or_else(|| paths.choose_for_new_data(), |chunk| chunk.path);
        let entry = paths.get_mut(id);
        if entry.reduction.is_some_and(|last| last.answers(tsn)) {
            return Heard::Answered;
        }
        let before = window(entry);
        entry.cc.on_ecn(now, entry.flightsize + entry.marked_bytes);
        self.note_reduction(id, true, paths);
        self.statistics.rare().reductions_by_mark += 1;
        trace.record(now, Probe::EcnResponse, id.0.into(), self.number(tsn));
        trace_window(now, id, paths.get(id), before, trace);
        Heard::Answered
    }

    /// Records that cwnd of a path was reduced, by a mark or a loss.
    pub(super) fn note_reduction(&self, id: PathId, by_mark: bool, paths: &mut Paths) {
        let highest = self.outstanding.next_tsn().prev();
        paths.get_mut(id).reduction = Some(CongestionEvent::new(highest, by_mark));
    }

    /// Whether a loss on a path belongs to the congestion event of an earlier ECN mark, so that
    /// cwnd should not be reduced again. This is true if the lowest chunk marked for retransmission
    /// was sent in the window of data for which the ECN mark has reduced cwnd (RFC 3168 §6.1.2).
    /// The loss of a retransmission is a new congestion event (RFC 5681 §4.3).
    pub(super) fn mark_has_answered(&self, id: PathId, paths: &Paths) -> bool {
        let Some(last) = paths.get(id).reduction.filter(CongestionEvent::is_by_mark) else {
            return false;
        };
        let from = self.outstanding.cumulative_point().next();
        let lost = self.outstanding.next_marked_on(id, from);
        let first_loss =
            |lost| (self.outstanding.get(lost)).is_some_and(|it| it.transmissions == 1);
        lost.is_some_and(|lost| last.answers(lost) && first_loss(lost))
    }

    /// Number of DATA packets so far that must not be ECN-capable: packets with retransmissions
    /// (RFC 3168 §6.1.5), and window probes (§6.1.6).
    pub(crate) fn never_marked(&self) -> u64 {
        let counted = self.statistics.told();
        counted.chunks_retransmitted + counted.window_probes
    }
}
