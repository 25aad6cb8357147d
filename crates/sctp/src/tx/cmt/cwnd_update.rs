//! CUC: a window grows by what is acknowledged in order on its own path. The cumulative TSN waits for the slowest path, and a
//! faster one would stand still meanwhile (Iyengar et al. 2006, cwnd update for CMT). Matters under the switch
//! `growth_needs_cumulative_advance` (RFC 2960, RFC 4960); RFC 9260 lets windows grow without.
//!
//! In order is what the path's lowest unacknowledged TSN was before the SACK; a TSN that was sent again there, after it had been
//! lost elsewhere, does not hide the lowest of those that were sent there first.

use super::Cmt;
use crate::path::{PathId, Paths};
use crate::tx::Sender;
use crate::tx::outstanding::ChunkState;
use anabranch_wire::Tsn;

impl Sender {
    /// Notes, before a SACK is counted, which is the lowest TSN that each path was the first to carry.
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

    /// Whether the SACK at hand acknowledged what was next in order on `id`; `advanced`: the cumulative TSN advanced.
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

    /// Whether a TSN that was outstanding is so no longer.
    #[inline]
    pub(in crate::tx) fn is_acknowledged(&self, tsn: Tsn) -> bool {
        self.outstanding
            .get(tsn)
            .is_none_or(|chunk| matches!(chunk.state, ChunkState::GapAcked | ChunkState::Abandoned))
    }
}
