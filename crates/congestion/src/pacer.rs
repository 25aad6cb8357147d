//! Pacer: spreads packets over the round trip, so that a window is not sent in one burst.

use anabranch_transport::{Nanos, time};

use crate::CongestionControl;

/// Pacer of one path. It delays packets only if the controller of the path has a pacing rate, or if
/// a factor is set.
///
/// After a packet of `bytes` bytes the next one may be sent `bytes / rate` later. The rate is that
/// of the controller ([`CongestionControl::pacing_rate`]); if it has none, the rate is `factor x
/// cwnd / SRTT`. RFC 9002 §7.7 suggests a factor of 1.25. The factor should exceed 1, because
/// otherwise the window is never fully used.
#[derive(Clone, Debug)]
pub struct Pacer {
    factor: Option<f64>,
    /// Number of bytes that may be sent in one burst after a pause.
    burst: u64,
    /// Maximum time by which the caller's timer may be late, nanoseconds.
    slack: Nanos,
    opens: Nanos,
    alarm: Option<Nanos>,
}

impl Pacer {
    /// Creates a pacer that permits the first packet immediately. `factor` must be above 0; with
    /// `None` only the controller determines the rate.
    pub const fn new(factor: Option<f64>) -> Self {
        Self {
            factor,
            burst: 0,
            slack: 0,
            opens: 0,
            alarm: None,
        }
    }

    /// Permits a burst of `burst` bytes after a pause (RFC 9002 §7.7), for packets that could have
    /// been sent earlier.
    #[must_use]
    pub const fn with_burst(self, burst: u64) -> Self {
        Self { burst, ..self }
    }

    /// Compensates for a timer that is late by up to `slack` nanoseconds: packets that became due
    /// meanwhile may be sent in one burst. Without this, a timer with a resolution of 1 ms would
    /// limit any rate to one packet per millisecond.
    #[must_use]
    pub const fn with_slack(self, slack: Nanos) -> Self {
        Self { slack, ..self }
    }

    /// Whether a packet may be sent at `now`.
    #[inline]
    pub fn allows(&self, now: Nanos) -> bool {
        now >= self.opens
    }

    /// Earliest time at which a packet may be sent, nanoseconds.
    pub fn opens(&self) -> Nanos {
        self.opens
    }

    /// Records that a packet of `bytes` bytes, as `control` counts them, was sent at `now`.
    #[inline]
    pub fn on_sent(
        &mut self,
        now: Nanos,
        bytes: u64,
        control: &dyn CongestionControl,
        srtt: Option<Nanos>,
    ) {
        let own = || {
            let srtt = srtt.filter(|&srtt| srtt > 0)?;
            Some(self.factor? * control.cwnd_exact() / time::seconds(srtt))
        };
        let rate = control
            .pacing_rate()
            .or_else(own)
            .filter(|&rate| rate > 0.0);
        let Some(rate) = rate else {
            return;
        };
        let gap = time::from_seconds(bytes as f64 / rate);
        let credit = time::from_seconds(self.burst as f64 / rate).max(self.slack);
        self.opens = self
            .opens
            .max(now.saturating_sub(credit))
            .saturating_add(gap);
        self.alarm = (self.opens > now).then_some(self.opens);
    }

    /// Time at which the sender should try again, if a packet was delayed; valid until
    /// [`Pacer::handle_timeout`].
    #[inline]
    pub fn deadline(&self) -> Option<Nanos> {
        self.alarm
    }

    /// Clears the deadline if it has expired by `now`.
    pub fn handle_timeout(&mut self, now: Nanos) {
        self.alarm = self.alarm.filter(|&alarm| alarm > now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sctp_newreno::{SctpNewReno, SctpParameters};
    use time::MILLISECOND as MS;

    fn control() -> SctpNewReno {
        SctpNewReno::new(SctpParameters {
            initial_cwnd: 10_000,
            ..SctpParameters::default()
        })
    }

    /// 1.25 x 10,000 bytes in 100 ms are 125,000 bytes per second, which is 1000 bytes every 8 ms.
    #[test]
    fn a_window_is_spread_over_the_round_trip() {
        let control = control();
        let mut pacer = Pacer::new(Some(1.25));
        assert!(pacer.allows(0));
        pacer.on_sent(0, 1000, &control, Some(100 * MS));
        assert!(!pacer.allows(8 * MS - 1) && pacer.allows(8 * MS));
        assert_eq!(pacer.deadline(), Some(8 * MS));
        // If a packet is sent late, the schedule restarts from its time, and the lost time is not
        // compensated.
        pacer.on_sent(20 * MS, 500, &control, Some(100 * MS));
        assert_eq!(pacer.deadline(), Some(24 * MS));
        pacer.handle_timeout(24 * MS);
        assert_eq!(pacer.deadline(), None);
        assert!(pacer.allows(24 * MS));
    }

    /// At 125,000 bytes per second, three packets are sent in one burst after a pause, and then one
    /// every 8 ms. No more packets than these three are sent early.
    #[test]
    fn a_burst_budget_is_caught_up_on_and_no_more() {
        let control = control();
        let mut pacer = Pacer::new(Some(1.25)).with_burst(2000);
        let mut sent = Vec::new();
        for ms in 1000..1060 {
            let now = ms * MS;
            pacer.handle_timeout(now);
            while pacer.allows(now) {
                pacer.on_sent(now, 1000, &control, Some(100 * MS));
                sent.push(ms - 1000);
            }
        }
        assert_eq!(sent, [0, 0, 0, 8, 16, 24, 32, 40, 48, 56]);
    }

    /// At 10 Mbyte/s a packet of 1000 bytes is due every 100 us. The timer expires only at whole
    /// milliseconds, and misses some of them. The number of packets is nevertheless that of an
    /// exact timer; only time beyond the slack of 2 ms is lost.
    #[test]
    fn a_late_timer_does_not_lower_the_rate() {
        let control = control();
        let sent_by = |slack: Nanos| {
            let mut pacer = Pacer::new(Some(1.0)).with_slack(slack);
            let mut sent = Vec::new();
            for ms in [0, 1, 2, 3, 5, 6, 16] {
                let now = ms * MS;
                pacer.handle_timeout(now);
                while pacer.allows(now) {
                    pacer.on_sent(now, 1000, &control, Some(MS));
                    sent.push(now);
                }
                assert!(pacer.deadline().is_some_and(|at| at > now));
            }
            let at = |ms: Nanos| sent.iter().filter(|&&it| it == ms * MS).count();
            [0, 1, 2, 3, 5, 6, 16].map(at)
        };
        assert_eq!(sent_by(0), [1; 7]);
        // Time before the first packet is not compensated.
        assert_eq!(sent_by(2 * MS), [1, 10, 10, 10, 20, 10, 21]);
    }

    #[test]
    fn without_a_rate_the_gate_stays_open() {
        let control = control();
        for (factor, srtt) in [(None, Some(100 * MS)), (Some(1.25), None)] {
            let mut pacer = Pacer::new(factor);
            pacer.on_sent(5, 1000, &control, srtt);
            assert!(pacer.allows(5));
            assert_eq!(pacer.deadline(), None);
        }
    }
}
