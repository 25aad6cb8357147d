//! Retransmission timeout (RFC 6298), computed exactly or in whole ticks of a coarse clock.

use anabranch_transport::Nanos;

/// Smoothed round-trip time and its variation. The unit is nanoseconds in `Exact` and ticks in
/// `Ticks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Smoothed {
    /// RFC 6298 §2 as specified.
    Exact { srtt: Nanos, rttvar: Nanos },
    /// Integer arithmetic of BSD, in which `srtt` is scaled by 8 and `rttvar` by 4.
    Ticks { srtt: i64, rttvar: i64 },
}

/// Settings of an [`RtoEstimator`]; all durations are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RtoConfig {
    /// Timeout before the first measurement (RFC 6298 §2.1).
    pub initial: Nanos,
    /// Minimum of the timeout before backoff (RFC 6298 §2.4).
    pub min: Nanos,
    /// Maximum of the timeout (RFC 6298 §2.5).
    pub max: Nanos,
    /// 0 selects exact arithmetic. Otherwise round-trip times are counted in whole ticks of this
    /// duration, from tick edge to tick edge, and smoothed with the scaled integers of BSD.
    pub rtt_granularity: Nanos,
    /// Time of the first tick edge, relative to time 0 of the driver; less than `rtt_granularity`.
    pub clock_phase: Nanos,
}

/// Estimator of the round-trip time, from which the retransmission timeout follows.
#[derive(Clone, Debug)]
pub(crate) struct RtoEstimator {
    config: RtoConfig,
    smoothed: Option<Smoothed>,
    /// Timeout according to the last measurement, before minimum, backoff and maximum apply.
    base: Nanos,
    /// A round-trip time was measured. The minimum does not apply to the initial timeout.
    measured: bool,
    backoff: u32,
}

/// Backoff factor above which BSD discards the smoothed time; the next measurement then counts as
/// the first (RFC 6298 §5, last note).
const BACKOFF_THAT_FORGETS: u32 = 8;

impl RtoEstimator {
    /// Creates an estimator without a measurement.
    pub(crate) fn new(config: RtoConfig) -> Self {
        Self {
            config,
            smoothed: None,
            base: config.initial,
            measured: false,
            backoff: 1,
        }
    }

    /// Adds a measurement and ends the backoff: the segment was sent at `sent_at`, and its
    /// acknowledgement arrived at `now`. The caller must apply Karn's rule: a retransmitted segment
    /// gives no measurement.
    pub(crate) fn sample(&mut self, now: Nanos, sent_at: Nanos) {
        if self.config.rtt_granularity == 0 {
            self.sample_exact(now.saturating_sub(sent_at));
        } else {
            self.sample_ticks(now, sent_at);
        }
        self.measured = true;
        self.backoff = 1;
    }

    fn sample_exact(&mut self, rtt: Nanos) {
        let (srtt, rttvar) = match self.smoothed {
            Some(Smoothed::Exact { srtt, rttvar }) => {
                let rttvar = (3 * rttvar + srtt.abs_diff(rtt)) / 4;
                ((7 * srtt + rtt) / 8, rttvar)
            }
            _ => (rtt, rtt / 2),
        };
        self.smoothed = Some(Smoothed::Exact { srtt, rttvar });
        self.base = srtt + 4 * rttvar;
    }

    fn sample_ticks(&mut self, now: Nanos, sent_at: Nanos) {
        let tick = self.config.rtt_granularity;
        let into_tick = (sent_at + self.config.clock_phase) % tick;
        let rtt = ((now.saturating_sub(sent_at) + into_tick) / tick).max(1) as i64;
        let (srtt, rttvar) = match self.smoothed {
            Some(Smoothed::Ticks { srtt, rttvar }) if srtt != 0 => {
                let error = rtt - (srtt >> 3);
                (
                    (srtt + error).max(1),
                    (rttvar + error.abs() - (rttvar >> 2)).max(1),
                )
            }
            _ => (rtt << 3, rtt << 1),
        };
        self.smoothed = Some(Smoothed::Ticks { srtt, rttvar });
        self.base = (((rttvar << 3) + srtt) >> 3) as u64 * tick;
    }

    /// Doubles the timeout after the timer expired (RFC 6298 §5.5).
    pub(crate) fn back_off(&mut self) {
        if self.rto() < self.config.max {
            self.backoff = self.backoff.saturating_mul(2);
        }
        if let Some(Smoothed::Ticks { srtt, rttvar }) = &mut self.smoothed
            && self.backoff > BACKOFF_THAT_FORGETS
        {
            *rttvar += *srtt >> 3;
            *srtt = 0;
        }
    }

    /// Ends the backoff although no round-trip time was measured.
    pub(crate) fn end_backoff(&mut self) {
        self.backoff = 1;
    }

    /// Sets the timeout for the start of data transfer after a SYN or SYN-ACK was lost (RFC 6298
    /// §5.7), unless there is a measurement.
    pub(crate) fn restart_with(&mut self, timeout: Nanos) {
        if !self.measured {
            self.base = timeout;
            self.backoff = 1;
        }
    }

    /// Current retransmission timeout, nanoseconds.
    pub(crate) fn rto(&self) -> Nanos {
        let base = if self.measured {
            self.base.max(self.config.min)
        } else {
            self.base
        };
        base.saturating_mul(u64::from(self.backoff))
            .min(self.config.max)
            .max(2 * self.config.rtt_granularity)
    }

    /// Smoothed round-trip time in nanoseconds; `None` before the first measurement.
    pub(crate) fn srtt(&self) -> Option<Nanos> {
        match self.smoothed? {
            Smoothed::Exact { srtt, .. } => Some(srtt),
            Smoothed::Ticks { srtt, .. } => Some((srtt >> 3) as u64 * self.config.rtt_granularity),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_transport::time::{MILLISECOND as MS, SECOND};

    fn exact() -> RtoEstimator {
        RtoEstimator::new(RtoConfig {
            initial: SECOND,
            min: SECOND,
            max: 60 * SECOND,
            rtt_granularity: 0,
            clock_phase: 0,
        })
    }

    fn ticks(phase: Nanos) -> RtoEstimator {
        RtoEstimator::new(RtoConfig {
            initial: 3 * SECOND,
            min: SECOND,
            max: 60 * SECOND,
            rtt_granularity: 100 * MS,
            clock_phase: phase,
        })
    }

    /// Computed by hand according to RFC 6298 §2. After 800 ms the RTO is 800 + 4 x 400; after a
    /// further 400 ms srtt is 750 and rttvar 400.
    #[test]
    fn exact_arithmetic() {
        let mut estimator = exact();
        assert_eq!(estimator.rto(), SECOND);
        estimator.sample(800 * MS, 0);
        assert_eq!(
            (estimator.srtt(), estimator.rto()),
            (Some(800 * MS), 2400 * MS)
        );
        estimator.sample(1400 * MS, 1000 * MS);
        assert_eq!(
            (estimator.srtt(), estimator.rto()),
            (Some(750 * MS), 750 * MS + 4 * 400 * MS)
        );
        estimator.back_off();
        assert_eq!(estimator.rto(), 4700 * MS);
        for _ in 0..10 {
            estimator.back_off();
        }
        assert_eq!(estimator.rto(), 60 * SECOND);
        estimator.end_backoff();
        assert_eq!(estimator.rto(), 2350 * MS);
    }

    #[test]
    fn the_floor_holds_before_the_back_off() {
        let mut estimator = exact();
        estimator.sample(10 * MS, 0);
        assert_eq!(estimator.rto(), SECOND);
        estimator.back_off();
        assert_eq!(estimator.rto(), 2 * SECOND);
    }

    #[test]
    fn a_lost_syn_begins_with_three_seconds() {
        let mut estimator = exact();
        estimator.back_off();
        assert_eq!(estimator.rto(), 2 * SECOND);
        estimator.restart_with(3 * SECOND);
        assert_eq!(estimator.rto(), 3 * SECOND);
    }

    /// 520 ms are 5 ticks, or 6 ticks if the segment was sent late in a tick. After 5 ticks, srtt
    /// is 40/8 and rttvar 10/4, so the RTO is (80 + 40) / 8 ticks.
    #[test]
    fn coarse_ticks() {
        let mut estimator = ticks(0);
        estimator.sample(1520 * MS, 1000 * MS);
        assert_eq!(
            (estimator.srtt(), estimator.rto()),
            (Some(500 * MS), 1500 * MS)
        );
        let mut late = ticks(85 * MS);
        late.sample(1520 * MS, 1000 * MS);
        assert_eq!(late.srtt(), Some(600 * MS));
        // 5 ticks again: the error is 0, rttvar is 10 - 2 = 8, and the RTO is (64 + 40) / 8 = 13
        // ticks.
        estimator.sample(2520 * MS, 2000 * MS);
        assert_eq!(estimator.rto(), 1300 * MS);
    }

    #[test]
    fn a_long_back_off_forgets_the_smoothed_time() {
        // After only three doublings, a measurement of 5 ticks is smoothed as usual.
        let mut kept = ticks(0);
        kept.sample(520 * MS, 0);
        (0..3).for_each(|_| kept.back_off());
        kept.sample(1520 * MS, 1000 * MS);
        assert_eq!(kept.rto(), 1300 * MS);
        let mut estimator = ticks(0);
        estimator.sample(520 * MS, 0);
        for _ in 0..4 {
            estimator.back_off();
        }
        assert_eq!(estimator.rto(), 16 * 1500 * MS);
        // This measurement counts as the first one: 20 ticks give an RTO of 20 + 4 x 10 ticks.
        estimator.sample(10_000 * MS, 8_000 * MS);
        assert_eq!(
            (estimator.srtt(), estimator.rto()),
            (Some(2 * SECOND), 6 * SECOND)
        );
    }
}
