//! Undo of a cwnd reduction after spurious retransmissions, if all retransmitted data is reported
//! as duplicate (RFC 3708; SCTP reports Duplicate TSNs, RFC 9260 §3.3.4).

use std::collections::VecDeque;

use anabranch_transport::{Nanos, Trace};
use anabranch_wire::Tsn;

use super::{Sender, trace_window, window};
use crate::compact_option::OptionalNanos;
use crate::path::{PathId, Paths};

/// Maximum number of retransmissions in a recovery for which the reduction can be undone.
const MAX_SENT_AGAIN: usize = 1024;

/// cwnd before a reduction, and retransmissions since then.
#[derive(Debug)]
pub(super) struct ReductionUndo {
    path: PathId,
    cwnd: f64,
    ssthresh: u64,
    /// TSNs that were retransmitted and not yet reported as duplicates.
    doubtful: VecDeque<Tsn>,
}

impl Sender {
    /// Called before cwnd of a path is reduced for a loss. If cwnd is reduced a second time,
    /// neither reduction can be undone.
    pub(super) fn remember_window(&mut self, id: PathId, paths: &Paths) {
        let Some(recovery) = self.optional_recovery.as_mut().filter(|it| it.undoes) else {
            return;
        };
        let entry = paths.get(id);
        recovery.reduction_undo = Some(ReductionUndo {
            path: id,
            cwnd: entry.cc.cwnd_exact(),
            ssthresh: entry.cc.ssthresh(),
            doubtful: VecDeque::new(),
        });
    }

    /// Must be called after a timeout, because later duplicates do not show whether data was lost.
    pub(super) fn forget_undo(&mut self) {
        if let Some(recovery) = &mut self.optional_recovery {
            recovery.reduction_undo = None;
        }
    }

    /// Records that a chunk was retransmitted.
    pub(super) fn count_sent_again(&mut self, tsn: Tsn) {
        let recovery = self.optional_recovery.as_mut();
        if let Some(reduction_undo) = recovery.and_then(|recovery| recovery.reduction_undo.as_mut())
        {
            reduction_undo.doubtful.push_back(tsn);
            if reduction_undo.doubtful.len() > MAX_SENT_AGAIN {
                self.forget_undo();
            }
        }
    }

    /// Processes the duplicates in a SACK. If all retransmissions were duplicates, no data was
    /// lost, and the reduction is undone.
    pub(super) fn undo_if_spurious(
        &mut self,
        now: Nanos,
        duplicates: &[Tsn],
        paths: &mut Paths,
        trace: &mut Trace,
    ) {
        let recovery = self.optional_recovery.as_mut();
        let Some(reduction_undo) = recovery.and_then(|recovery| recovery.reduction_undo.as_mut())
        else {
            return;
        };
        let before = reduction_undo.doubtful.len();
        for duplicate in duplicates {
            let found = reduction_undo
                .doubtful
                .iter()
                .position(|tsn| tsn == duplicate);
            found.and_then(|index| reduction_undo.doubtful.remove(index));
        }
        if reduction_undo.doubtful.len() == before || !reduction_undo.doubtful.is_empty() {
            return;
        }
        let (id, cwnd, ssthresh) = (
            reduction_undo.path,
            reduction_undo.cwnd,
            reduction_undo.ssthresh,
        );
        self.forget_undo();
        let entry = paths.get_mut(id);
        let shown = window(entry);
        entry.cc.on_undo(cwnd, ssthresh);
        (entry.prr, entry.most_in_flight) = (None, OptionalNanos::NONE);
        self.statistics.rare().reductions_undone += 1;
        trace_window(now, id, entry, shown, trace);
    }
}
