//! Recent loss ratio of a path.

/// Number of sent chunks after which earlier losses count half.
const HALF_LIFE: u32 = 1_000;

/// Weighted count of recent losses of a path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LossRatio {
    lost: u32,
    /// Number of chunks that the path had carried at the start of the current count.
    since: u32,
}

impl LossRatio {
    /// Counts a lost chunk; `carried` is the number of chunks sent on the path so far.
    pub(crate) fn count(&mut self, carried: u32) {
        self.lost = self.lost.saturating_add(1);
        let sent = carried.wrapping_sub(self.since);
        if sent > 2 * HALF_LIFE {
            self.lost /= 2;
            self.since = carried.wrapping_sub(sent / 2);
        }
    }

    /// Loss ratio between 0 and 1; 0 before any loss.
    pub(crate) fn share(&self, carried: u32) -> f64 {
        let sent = carried.wrapping_sub(self.since);
        f64::from(self.lost) / f64::from(sent.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One of ten packets is lost at first, and later none: the earlier losses must lose weight.
    #[test]
    fn the_share_that_was_lost_of_late_is_kept() {
        let mut losses = LossRatio::default();
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
