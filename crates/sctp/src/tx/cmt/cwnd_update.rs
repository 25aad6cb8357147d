//! CUC: cwnd of a path grows when data is acknowledged in order on this path. Otherwise cwnd of a
//! fast path could not grow while the cumulative TSN waits for the slowest path (Iyengar et al.
//! 2006, cwnd update for CMT). CUC has an effect under the switch `growth_needs_cumulative_advance`
//! (RFC 2960, RFC 4960); RFC 9260 lets cwnd grow even if the cumulative TSN does not advance.
//!
//! Data is in order if it was the path's lowest unacknowledged TSN before the SACK. A TSN that was
//! retransmitted on the path after a loss on another path should not hide the lowest TSN that was
//! first sent on this path.

use super::Cmt;
use crate::path::{PathId, Paths};
use crate::tx::Sender;
use crate::tx::outstanding::ChunkState;
use anabranch_wire::Tsn;

impl Sender {
    /// Records the lowest TSN that was first sent on each path, before a SACK is processed.
    #[cold]
    pub(in crate::tx) fn expect_in_order(&mut self, paths: &Paths) {
        let Some(mut cmt) = self.cmt.take() else {
            return;
        };
        let first = self.outstanding.cumulative_point().next();
        for (id, _) in paths.iter() {
            let each = &mut cmt.each[usize::from(id.0)];
            let from = each.fresh_from.filter(|from| from.gt(first));
            let mut next = self.outstanding.earliest_on(id, from.unwrap_or(first));
            while let Some(tsn) = next {
                let chunk = self.outstanding.get(tsn);
                if chunk.is_some_and(|chunk| chunk.transmissions == 1) {
                    break;
                }
                next = self.outstanding.earliest_on(id, tsn.next());
            }
            each.fresh_before = next;
            each.fresh_from = Some(next.unwrap_or(self.outstanding.next_tsn()));
        }
        self.cmt = Some(cmt);
    }

    /// Whether the current SACK acknowledged the next TSN in order on `id`; without CUC, whether
    /// the cumulative TSN advanced (`advanced`).
    pub(in crate::tx) fn advanced_on(&self, cmt: &Cmt, id: PathId, advanced: bool) -> bool {
        if !cmt.cwnd_update {
            return advanced;
        }
        let index = usize::from(id.0);
        let lowest = self.acks[index].earliest_before;
        [lowest, cmt.each[index].fresh_before]
            .into_iter()
            .flatten()
            .any(|tsn| self.is_acknowledged(tsn))
    }

    /// Whether a TSN that was outstanding before the SACK is now acknowledged.
    #[inline]
    pub(in crate::tx) fn is_acknowledged(&self, tsn: Tsn) -> bool {
        self.outstanding
            .get(tsn)
            .is_none_or(|chunk| matches!(chunk.state, ChunkState::GapAcked | ChunkState::Abandoned))
    }
}
