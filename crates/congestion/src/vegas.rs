//! Vegas (L. Brakmo and L. Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global
//! Internet", JSAC 1995): adjusts the window so that a few segments are queued, according to the
//! round-trip time.
//!
//! Diff of the paper is `cwnd (RTT - BaseRTT) / RTT`, in segments. Once per round trip the window
//! grows by a segment if Diff is below alpha, and shrinks by a segment if it is above beta. Slow
//! start doubles the window every other round trip, and ends if Diff is above gamma. The response
//! to losses is that of the base.

use anabranch_transport::Nanos;

use crate::algorithm::{Algorithm, Property, Requirement};
use crate::round_counter::{RoundDelays, RoundRtts};
use crate::{AckSample, CongestionControl, LossCause, WindowControl};

/// Declaration of the algorithm `vegas`.
pub static ALGORITHM: Algorithm = Algorithm {
    name: "vegas",
    about: "cwnd keeps 2 to 4 segments in queues, by the round-trip time (Brakmo and Peterson 1995)",
    only: None,
    needs: Requirement::Nothing,
    properties: &[Property::OwnIncrease, Property::AbsoluteScale],
    make: &|base, _| Box::new(Vegas::new(base)),
};

/// Alpha: number of queued segments below which the window grows.
const ALPHA: f64 = 2.0;
/// Beta: number of queued segments above which the window shrinks.
const BETA: f64 = 4.0;
/// Gamma: number of queued segments above which slow start ends.
const GAMMA: f64 = 1.0;
/// Minimum window in congestion avoidance, segments.
const MIN_WINDOW: f64 = 2.0;

/// Controller of Vegas, with the slow start and the response to losses of `Base`.
#[derive(Clone, Debug)]
pub struct Vegas<Base> {
    base: Base,
    delays: RoundDelays,
    /// Whether slow start keeps its window in this round, so that the round-trip time can be
    /// compared.
    holds: bool,
}

impl<Base: WindowControl> Vegas<Base> {
    /// Creates a controller for a new path.
    pub fn new(base: Base) -> Self {
        Self {
            base,
            delays: RoundDelays::default(),
            holds: false,
        }
    }

    /// Adjusts the window at the end of a round trip with these round-trip times.
    fn turn(&mut self, seen: &RoundRtts, full: bool) {
        let unit = self.base.unit().max(1) as f64;
        let window = self.base.cwnd_exact();
        let Some(diff) = self.delays.backlog(window / unit, seen) else {
            return;
        };
        if self.base.in_slow_start() {
            if diff > GAMMA {
                let left = (window * 7.0 / 8.0).max(MIN_WINDOW * unit);
                self.base.set_ssthresh(left - 1.0);
                self.base.set_cwnd(left);
            }
            self.holds = !self.holds;
        } else if diff > BETA {
            self.base.set_cwnd((window - unit).max(MIN_WINDOW * unit));
            self.keep_out_of_slow_start();
        } else if diff < ALPHA && full {
            self.base.set_cwnd(window + unit);
        }
    }

    /// Prevents slow start from increasing the window that was just reduced.
    fn keep_out_of_slow_start(&mut self) {
        if self.base.in_slow_start() {
            self.base.set_ssthresh(self.base.cwnd_exact() - 1.0);
        }
    }
}

impl<Base: WindowControl> CongestionControl for Vegas<Base> {
    fn on_sent(&mut self, now: Nanos, bytes: u64, flightsize: u64) {
        self.delays.on_sent(bytes);
        self.base.on_sent(now, bytes, flightsize);
    }

    fn on_ack(&mut self, ack: &AckSample) {
        let ended = self.delays.on_ack(ack);
        let full = ack.flightsize_before + self.base.unit() >= self.base.cwnd();
        if self.base.in_slow_start() && !self.holds {
            self.base.on_ack(ack);
        }
        if let Some(seen) = ended.filter(|_| !ack.in_recovery) {
            self.turn(&seen, full);
        }
    }

    fn on_ecn(&mut self, now: Nanos, flightsize: u64) {
        self.base.on_ecn(now, flightsize);
    }

    fn on_loss(&mut self, now: Nanos, cause: LossCause, flightsize: u64) {
        self.holds = false;
        self.base.on_loss(now, cause, flightsize);
    }

    fn wants_latest_rtt(&self) -> bool {
        true
    }

    rest_of_base!();

    fn name(&self) -> &'static str {
        ALGORITHM.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::round_counter::bulk::Bulk;
    use crate::sctp_newreno::{SctpNewReno, SctpParameters};

    fn control(cwnd: u64, ssthresh: u64) -> Bulk<Vegas<SctpNewReno>> {
        Bulk::new(Vegas::new(SctpNewReno::new(SctpParameters {
            unit: 1000,
            initial_cwnd: cwnd,
            initial_ssthresh: ssthresh,
            floor_units: 2,
            ..SctpParameters::default()
        })))
    }

    /// With 20 segments at 100 ms: at 105 ms 0.95 segments are queued, at 115 ms 2.6, and at 130 ms
    /// 4.6.
    #[test]
    fn two_to_four_segments_stay_in_queues() {
        let mut it = control(20_000, 1);
        assert_eq!(it.round(100), 21_000);
        assert_eq!(it.round(105), 22_000, "21 x 5 / 105 = 1");
        assert_eq!(it.round(115), 22_000, "22 x 15 / 115 = 2.9");
        assert_eq!(it.round(130), 21_000, "22 x 30 / 130 = 5.1");
        assert_eq!(it.control.base.partial_bytes_acked(), 0);
    }

    /// Slow start grows every other round, and ends when 1.9 of 21 segments are queued; the window
    /// is then reduced by an eighth.
    #[test]
    fn slow_start_doubles_every_other_round_and_ends_by_delay() {
        let mut it = control(3000, 1_000_000);
        let windows: Vec<u64> = (0..4).map(|_| it.round(100)).collect();
        assert_eq!(windows, [6000, 6000, 11_000, 11_000]);
        assert_eq!(
            it.round(110),
            18_375,
            "21 x 10 / 110 = 1.9: 21 less an eighth"
        );
        assert!(!it.control.base.in_slow_start());
    }

    #[test]
    fn a_loss_is_the_bases() {
        let mut it = control(20_000, 1);
        it.control.on_loss(0, LossCause::FastRetransmit, 20_000);
        assert_eq!(it.control.cwnd(), 10_000);
    }
}
