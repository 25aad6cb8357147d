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
    /// Estimator before its first measurement (§6.3.1 C1), with `initial` as RTO.
    pub fn new(initial: Nanos, min: Nanos, max: Nanos) -> Self {
        Self {
            srtt: OptionalNanos::NONE,
            rttvar: 0,
            rto: initial,
            min,
            max: max.max(min),
        }
    }

    /// Adds a round-trip time measurement in nanoseconds (§6.3.1 C2, C3, C6, C7). The caller must
    /// apply Karn's rule (C5).
    pub fn measure(&mut self, rtt: Nanos) {
        let rtt = rtt.min(1 << 60);
        let (srtt, rttvar) = match self.srtt.get() {
            None => (rtt, rtt / 2),
            // RTO.Beta is 1/4 and RTO.Alpha is 1/8. RTTVAR is computed from the old SRTT.
            Some(srtt) => (
                (7 * srtt + rtt) / 8,
                (3 * self.rttvar + srtt.abs_diff(rtt)) / 4,
            ),
        };
        self.srtt = OptionalNanos::some(srtt);
        self.rttvar = rttvar;
        self.rto = (srtt + 4 * rttvar).clamp(self.min, self.max);
    }

    /// Lower and upper bound of the RTO.
    pub(crate) fn bounds(&self) -> (Nanos, Nanos) {
        (self.min, self.max)
    }

    /// Sets new bounds, to which the current and later RTOs are clamped.
    pub(crate) fn set_bounds(&mut self, min: Nanos, max: Nanos) {
        (self.min, self.max) = (min, max.max(min));
        self.rto = self.rto.clamp(self.min, self.max);
    }

    /// Doubles the RTO after an expiration, up to its upper bound (§6.3.3 E2).
    pub fn back_off(&mut self) {
        self.rto = self.rto.saturating_mul(2).min(self.max);
    }

    /// Current RTO in nanoseconds.
    pub fn rto(&self) -> Nanos {
        self.rto
    }

    /// RTO without backoff, from the measurements. Before the first measurement it is half of the
    /// current RTO, which is exact after one backoff.
    pub(crate) fn measured(&self) -> Nanos {
        let measured = |srtt: Nanos| (srtt + 4 * self.rttvar).clamp(self.min, self.max);
        self.srtt.get().map_or(self.rto / 2, measured)
    }

    /// Smoothed round-trip time in nanoseconds, once measured.
    pub fn srtt(&self) -> Option<Nanos> {
        self.srtt.get()
    }

    /// Round-trip time variation in nanoseconds; 0 before the first measurement.
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
