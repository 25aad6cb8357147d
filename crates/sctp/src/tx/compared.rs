//! Selection of chunks whose acknowledgment shows that packets of a size arrive (RFC 8899 §4.3).

use std::ops::RangeInclusive;

use anabranch_wire::Tsn;

use super::Sender;
use super::outstanding::ChunkState;
use crate::path::PathId;

/// Maximum number of examined chunks. The chunks with the lowest TSNs are sufficient, because they
/// are retransmitted first after a timeout.
const MAX_COMPARED: usize = 8;

impl Sender {
    /// The lowest unacknowledged chunks from `from` on that were last sent on path `id` and whose
    /// user data length is in `sizes`.
    #[cold]
    pub(crate) fn unacknowledged_on(
        &self,
        id: PathId,
        from: Option<Tsn>,
        sizes: RangeInclusive<usize>,
    ) -> Vec<Tsn> {
        let next = |tsn: Tsn| self.outstanding.earliest_on(id, tsn);
        let all = std::iter::successors(from.and_then(next), |tsn| next(tsn.next()));
        let has_size = |tsn: &Tsn| {
            let chunk = self.outstanding.get(*tsn);
            chunk.is_some_and(|it| sizes.contains(&it.fragment.user_data.len()))
        };
        all.filter(has_size).take(MAX_COMPARED).collect()
    }

    /// Whether any of these chunks was acknowledged. With partial reliability, a chunk that the
    /// cumulative TSN has passed may not have arrived.
    #[cold]
    pub(crate) fn any_arrived(&self, tsns: &[Tsn]) -> bool {
        tsns.iter().any(|&tsn| match self.outstanding.get(tsn) {
            Some(chunk) => chunk.state == ChunkState::GapAcked,
            None => self.pr_sctp.is_none(),
        })
    }
}
