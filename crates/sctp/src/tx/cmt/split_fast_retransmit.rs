//! SFR-CMT: missing reports are counted, and losses recovered, per path, because reordering by a
//! faster path is no sign of a loss (Iyengar et al. 2006, split fast retransmit).

use anabranch_transport::{Nanos, Trace};
use anabranch_wire::Tsn;

use super::Cmt;
use crate::path::{PathId, Paths};
use crate::profile::FastRecovery;
use crate::tx::Sender;
use crate::tx::ack::Newly;
use crate::tx::gap_blocks::TsnRange;

impl Sender {
    /// Whether missing reports and fast recovery are per path.
    pub(in crate::tx) fn splits_fast_retransmit(&self) -> bool {
        self.cmt
            .as_ref()
            .is_some_and(|cmt| cmt.split_fast_retransmit)
    }

    /// Like [`Sender::count_missing`]: a report counts for a TSN only if the SACK newly
    /// acknowledges a higher TSN that was sent on the same path.
    #[cold]
    pub(in crate::tx) fn count_missing_by_path(
        &mut self,
        now: Nanos,
        cumulative: Tsn,
        newly: &Newly,
        blocks: &[TsnRange],
        paths: &mut Paths,
        trace: &mut Trace,
    ) -> u32 {
        let mut marked = 0;
        for index in 0..self.acks.len() {
            let ack = &self.acks[index];
            if ack.chunks == 0 {
                continue;
            }
            // Only chunks that count a report are examined, because otherwise a peer could cause
            // high cost.
            let (id, limit) = (PathId(index as u8), ack.highest);
            let mut hole_start = cumulative.next();
            for run in blocks {
                let hole_end = cumulative.add(run.start);
                let end = if hole_end.lt(limit) { hole_end } else { limit };
                let mut next = self.outstanding.next_reportable_on(id, hole_start, end);
                while let Some(tsn) = next {
                    let reports = self.reports_of(tsn, newly);
                    marked += u32::from(self.report_missing(now, tsn, reports, paths, trace));
                    next = self.outstanding.next_reportable_on(id, tsn.next(), end);
                }
                hole_start = cumulative.add(run.end).next();
                if hole_start.gt(limit) {
                    break;
                }
            }
        }
        marked
    }

    /// Whether `id` is in fast recovery: a TSN up to its exit point that was last sent on this path
    /// is still unacknowledged.
    pub(in crate::tx) fn recovers(&self, cmt: &Cmt, id: PathId) -> bool {
        let first = self.outstanding.cumulative_point().next();
        cmt.each[usize::from(id.0)]
            .recovery_until
            .is_some_and(|until| {
                let lowest = self.outstanding.earliest_on(id, first);
                lowest.is_some_and(|tsn| tsn.le(until))
            })
    }

    /// Ends fast recovery of paths that have passed their exit points, after a SACK was processed,
    /// and clears the flags of the SACK.
    #[cold]
    pub(in crate::tx) fn end_recoveries(&mut self, paths: &Paths) {
        self.note_sack_flags(0);
        for (id, _) in paths.iter() {
            let over = self.cmt.as_ref().is_some_and(|cmt| !self.recovers(cmt, id));
            if over {
                self.forget_recovery(id);
            }
        }
    }

    /// Ends fast recovery of `id` because of a timeout.
    pub(in crate::tx) fn forget_recovery(&mut self, id: PathId) {
        if let Some(cmt) = &mut self.cmt {
            cmt.each[usize::from(id.0)].recovery_until = None;
        }
    }

    /// Enters fast recovery after missing reports have marked chunks: reduces cwnd of each path
    /// with losses that is not in recovery yet.
    pub(in crate::tx) fn enter_recovery_by_path(
        &mut self,
        now: Nanos,
        paths: &mut Paths,
        trace: &mut Trace,
    ) {
        let until = self.outstanding.next_tsn().prev();
        for index in 0..self.acks.len() {
            let id = PathId(index as u8);
            let recovers = self.cmt.as_ref().is_some_and(|cmt| self.recovers(cmt, id));
            if self.acks[index].lost == 0 || recovers {
                continue;
            }
            self.cut(now, id, paths, trace);
            if self.profile.fast_recovery != FastRecovery::None
                && let Some(cmt) = &mut self.cmt
            {
                cmt.each[index].recovery_until = Some(until);
            }
        }
    }
}
