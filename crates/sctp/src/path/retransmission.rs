//! Path selection for retransmissions in concurrent multipath transfer (Iyengar et al. 2006,
//! retransmission policies).

use super::{PathEntry, PathId, PathState, Paths};
use crate::profile::RetransmissionPath;

/// Chunks sent until earlier losses count half.
const HALF_LIFE: u32 = 1_000;

/// Recent losses of a path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Losses {
    lost: u32,
    /// Chunks that the path had carried at the start of the count.
    since: u32,
}

impl Losses {
    /// Counts a lost chunk of a path that has `carried` this many.
    pub(crate) fn count(&mut self, carried: u32) {
        self.lost = self.lost.saturating_add(1);
        let sent = carried.wrapping_sub(self.since);
        if sent > 2 * HALF_LIFE {
            self.lost /= 2;
            self.since = carried.wrapping_sub(sent / 2);
        }
    }

    /// The loss ratio; 0 before any loss.
    pub(crate) fn share(&self, carried: u32) -> f64 {
        let sent = carried.wrapping_sub(self.since);
        f64::from(self.lost) / f64::from(sent.max(1))
    }
}

impl Paths {
    /// The path for a chunk last sent on `last`, by a policy that compares active paths; `last`
    /// wins ties. Without an active path, the usual choice.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// One of ten is lost, then none: earlier losses should count less and less.
    #[test]
    fn the_share_that_was_lost_of_late_is_kept() {
        let mut losses = Losses::default();
        assert_eq!(losses.share(0), 0.0);
        for carried in (10..=5_000).step_by(10) {
            losses.count(carried);
            let share = losses.share(carried);
            assert!((0.09..0.11).contains(&share), "{share} at {carried}");
        }
        let lost = losses.lost;
        assert!((100..=200).contains(&lost), "{lost}");
        assert!(losses.share(50_000) < 0.005);
        losses.count(50_000);
        assert_eq!(losses.lost, lost.div_ceil(2));
    }
}
