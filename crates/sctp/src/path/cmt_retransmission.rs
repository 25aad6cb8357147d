//! Path selection for retransmissions in concurrent multipath transfer (Iyengar et al. 2006,
//! retransmission policies).

use super::{PathEntry, PathId, PathState, Paths};
use crate::profile::RetransmissionPath;

impl Paths {
    /// Best active path for the retransmission of a chunk that was last sent on `last`, according
    /// to `policy`; among equal paths, `last` is preferred. If no path is active, the result is
    /// that of [`Paths::alternate_to`].
    #[cold]
    pub(super) fn best_for_retransmission(
        &self,
        last: PathId,
        policy: RetransmissionPath,
    ) -> PathId {
        let merit = |entry: &PathEntry| match policy {
            RetransmissionPath::LargestCwnd => entry.cc.cwnd_exact(),
            RetransmissionPath::LargestSsthresh => entry.cc.ssthresh() as f64,
            RetransmissionPath::LeastLoss => -entry.losses.share(entry.carried.chunks),
            _ => f64::from(u8::from(entry.has_room())),
        };
        let mut best: Option<(PathId, f64)> = None;
        let count = self.len();
        for step in 0..count {
            let id = PathId(((usize::from(last.0) + step) % count) as u8);
            let entry = self.get(id);
            if entry.state == PathState::Active && best.is_none_or(|(_, most)| merit(entry) > most)
            {
                best = Some((id, merit(entry)));
            }
        }
        best.map_or_else(|| self.alternate_to(last), |(id, _)| id)
    }
}
