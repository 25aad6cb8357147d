//! Retransmission timeout of one path (RFC 9260 §6.3.1).

use anabranch_transport::Nanos;

use crate::compact_option::OptionalNanos;

/// SRTT, RTTVAR and RTO of one path, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RtoEstimator {
    srtt: OptionalNanos,
    rttvar: Nanos,
    rto: Nanos,
    min: Nanos,
    max: Nanos,
}

impl RtoEstimator {
    /// An estimator before its first measurement (§6.3.1 C1): RTO is `initial`.
    pub fn new(initial: Nanos, min: Nanos, max: Nanos) -> Self {
        Self {
            srtt: OptionalNanos::NONE,
            rttvar: 0,
            rto: initial,
            min,
            max: max.max(min),
        }
    }

    /// Adds a measurement of the round-trip time (§6.3.1 C2, C3, C6, C7). The caller must apply
    /// Karn's rule (C5).
    pub fn measure(&mut self, rtt: Nanos) {
        let rtt = rtt.min(1 << 60);
        let (srtt, rttvar) = match self.srtt.get() {
            None => (rtt, rtt / 2),
            // RTO.Beta 1/4, RTO.Alpha 1/8; the variation first, because it uses the old SRTT.
            Some(srtt) => (
                (7 * srtt + rtt) / 8,
                (3 * self.rttvar + srtt.abs_diff(rtt)) / 4,
            ),
        };
        self.srtt = OptionalNanos::some(srtt);
        self.rttvar = rttvar;
        self.rto = (srtt + 4 * rttvar).clamp(self.min, self.max);
    }

    /// The bounds of the timeout: minimum and maximum.
    pub(crate) fn bounds(&self) -> (Nanos, Nanos) {
        (self.min, self.max)
    }

    /// Sets new bounds. The current timeout and later ones are clamped to these bounds.
    pub(crate) fn set_bounds(&mut self, min: Nanos, max: Nanos) {
        (self.min, self.max) = (min, max.max(min));
        self.rto = self.rto.clamp(self.min, self.max);
    }

    /// The timer expired: RTO doubles up to its maximum (§6.3.3 E2).
    pub fn back_off(&mut self) {
        self.rto = self.rto.saturating_mul(2).min(self.max);
    }

    /// The current timeout.
    pub fn rto(&self) -> Nanos {
        self.rto
    }

    /// The measured timeout without backoff. Before the first measurement this timeout is half of
    /// the current timeout, which one backoff has doubled.
    pub(crate) fn measured(&self) -> Nanos {
        let measured = |srtt: Nanos| (srtt + 4 * self.rttvar).clamp(self.min, self.max);
        self.srtt.get().map_or(self.rto / 2, measured)
    }

    /// Smoothed round-trip time, once measured.
    pub fn srtt(&self) -> Option<Nanos> {
        self.srtt.get()
    }

    /// Round-trip time variation; 0 before the first measurement.
    pub fn rttvar(&self) -> Nanos {
        self.rttvar
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_transport::time::{MILLISECOND, SECOND};

    fn estimator() -> RtoEstimator {
        RtoEstimator::new(3 * SECOND, SECOND, 60 * SECOND)
    }

    #[test]
    fn first_and_second_measurement_by_hand() {
        let mut rto = estimator();
        assert_eq!((rto.rto(), rto.srtt()), (3 * SECOND, None));
        rto.measure(600 * MILLISECOND);
        assert_eq!(
            (rto.srtt(), rto.rttvar()),
            (Some(600 * MILLISECOND), 300 * MILLISECOND)
        );
        assert_eq!(rto.rto(), 1800 * MILLISECOND);
        // rttvar = 3/4 x 300 + 1/4 x 80 = 245; srtt = 7/8 x 600 + 1/8 x 520 = 590
        rto.measure(520 * MILLISECOND);
        assert_eq!(
            (rto.srtt(), rto.rttvar()),
            (Some(590 * MILLISECOND), 245 * MILLISECOND)
        );
        assert_eq!(rto.rto(), 1570 * MILLISECOND);
    }

    #[test]
    fn bounds_hold_and_back_off_doubles_to_the_maximum() {
        let mut rto = estimator();
        rto.measure(MILLISECOND);
        assert_eq!(rto.rto(), SECOND);
        for expected in [2, 4, 8, 16, 32, 60, 60] {
            rto.back_off();
            assert_eq!(rto.rto(), expected * SECOND);
        }
        rto.measure(u64::MAX);
        assert_eq!(rto.rto(), 60 * SECOND);
        rto.measure(0);
        assert!(rto.rto() <= 60 * SECOND);
    }
}
