//! Illinois (S. Liu, T. Başar and R. Srikant, "TCP-Illinois: A loss and delay-based congestion
//! control algorithm for high-speed networks", VALUETOOLS 2006): losses determine the times at
//! which the window grows or is reduced, and the queueing delay determines by how much.
//!
//! `da` is the mean queueing delay of the last round trip, and `dm` is the maximum so far. A round
//! trip adds `alpha = 10` segments if da is at most 0.01 dm, and fewer with a larger da, down to
//! 0.3 if da equals dm. A loss reduces the window by `beta = 1/8` if da is at most 0.1 dm; beta
//! increases linearly to 1/2 if da is 0.8 dm or more. Below 15 segments alpha and beta are those of
//! Reno. Slow start and timeouts are those of the base.

use anabranch_transport::Nanos;

use crate::algorithm::{Algorithm, Property, Requirement};
use crate::fractional_window::FractionalWindow;
use crate::round_counter::{RoundDelays, RoundRtts};
use crate::{AckSample, CongestionControl, LossCause, WindowControl};

/// Declaration of the algorithm `illinois`.
pub static ALGORITHM: Algorithm = Algorithm {
    name: "illinois",
    about: "cwnd grows by 10 to 0.3 segments and falls by 1/8 to 1/2, as delay grows (Liu, Basar and Srikant 2006)",
    only: None,
    needs: Requirement::Nothing,
    properties: &[Property::OwnFloor],
    make: &|base, _| Box::new(Illinois::new(base)),
};

const ALPHA_MAX: f64 = 10.0;
const ALPHA_MIN: f64 = 0.3;
const BETA_MIN: f64 = 0.125;
const BETA_MAX: f64 = 0.5;
/// Window in segments below which Reno's rules apply.
const THRESHOLD: f64 = 15.0;
/// Fractions of `dm` that bound alpha and beta: eta 1, 2 and 3.
const ETA: [f64; 3] = [0.01, 0.1, 0.8];
/// Number of consecutive round trips with a small delay after which alpha returns to its maximum
/// (theta).
const THETA: u32 = 5;

/// Controller of Illinois, with the slow start and the timeouts of `Base`.
#[derive(Clone, Debug)]
pub struct Illinois<Base> {
    base: Base,
    delays: RoundDelays,
    alpha: f64,
    beta: f64,
    /// Number of consecutive round trips with a delay of at most eta 1.
    low: u32,
    /// Whether the delay has been above eta 1 since alpha was at its maximum.
    above: bool,
    /// Growth that has not been applied yet, because windows are whole bytes.
    fraction: FractionalWindow,
}

impl<Base: WindowControl> Illinois<Base> {
    /// Creates a controller for a new path.
    pub fn new(base: Base) -> Self {
        Self {
            base,
            delays: RoundDelays::default(),
            alpha: 1.0,
            beta: BETA_MAX,
            low: 0,
            above: false,
            fraction: FractionalWindow::default(),
        }
    }

    /// Computes alpha and beta from the delays of a round trip.
    fn adapt(&mut self, seen: &RoundRtts) {
        let (Some(mean), Some(least), Some(most)) =
            (seen.mean(), self.delays.least(), self.delays.most())
        else {
            return;
        };
        let (delay, greatest) = ((mean - least) as f64, (most - least) as f64);
        self.alpha = self.alpha_for(delay, greatest);
        self.beta = beta_for(delay, greatest);
    }

    fn alpha_for(&mut self, delay: f64, greatest: f64) -> f64 {
        let low = ETA[0] * greatest;
        if delay <= low {
            self.low += 1;
            if !self.above || self.low >= THETA {
                self.above = false;
                return ALPHA_MAX;
            }
            return self.alpha;
        }
        (self.low, self.above) = (0, true);
        // alpha is kappa 1 / (kappa 2 + da), with its maximum at eta 1 and its minimum at dm.
        let kappa_1 = (greatest - low) * ALPHA_MIN * ALPHA_MAX / (ALPHA_MAX - ALPHA_MIN);
        let kappa_2 = (greatest - low) * ALPHA_MIN / (ALPHA_MAX - ALPHA_MIN) - low;
        kappa_1 / (kappa_2 + delay)
    }

    fn is_small(&self) -> bool {
        self.base.cwnd_exact() < THRESHOLD * self.base.unit() as f64
    }
}

/// Beta for a delay; linear between eta 2 and eta 3.
fn beta_for(delay: f64, greatest: f64) -> f64 {
    let (low, high) = (ETA[1] * greatest, ETA[2] * greatest);
    if delay <= low {
        BETA_MIN
    } else if delay >= high {
        BETA_MAX
    } else {
        BETA_MIN + (BETA_MAX - BETA_MIN) * (delay - low) / (high - low)
    }
}

impl<Base: WindowControl> CongestionControl for Illinois<Base> {
    fn on_sent(&mut self, now: Nanos, bytes: u64, flightsize: u64) {
        self.delays.on_sent(bytes);
        self.base.on_sent(now, bytes, flightsize);
    }

    fn on_ack(&mut self, ack: &AckSample) {
        if let Some(seen) = self.delays.on_ack(ack) {
            self.adapt(&seen);
        }
        let adapts = !self.base.in_slow_start() && !self.is_small();
        let before = self.base.cwnd_exact();
        self.base.on_ack(ack);
        let grown = self.base.cwnd_exact() - before;
        if adapts && grown > 0.0 {
            let earned = self.fraction.earn(grown * self.alpha);
            self.base.set_cwnd(before + earned);
        }
    }

    fn on_ecn(&mut self, now: Nanos, flightsize: u64) {
        let before = self.cwnd_exact();
        self.on_loss(now, LossCause::FastRetransmit, flightsize);
        self.base.cap_cwnd(before);
    }

    fn on_loss(&mut self, now: Nanos, cause: LossCause, flightsize: u64) {
        let beta = if self.is_small() { BETA_MAX } else { self.beta };
        let window = self.base.cwnd_exact();
        self.base.on_loss(now, cause, flightsize);
        self.fraction.clear();
        self.low = 0;
        if cause == LossCause::FastRetransmit {
            let left = (1.0 - beta) * window.min(flightsize as f64);
            self.base.reduce_to(left, cause);
        }
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
    use crate::sctp_newreno::{SctpNewReno, SctpParameters};
    use anabranch_transport::time::MILLISECOND as MS;

    fn control(cwnd: u64) -> Illinois<SctpNewReno> {
        Illinois::new(SctpNewReno::new(SctpParameters {
            unit: 1000,
            initial_cwnd: cwnd,
            initial_ssthresh: 1,
            floor_units: 2,
            growth_needs_full_cwnd: false,
            ..SctpParameters::default()
        }))
    }

    fn round(it: &mut Illinois<SctpNewReno>, milliseconds: u64) -> u64 {
        let window = it.cwnd();
        it.on_sent(0, window, window);
        it.on_ack(&AckSample {
            bytes_acked: window,
            segments_acked: (window / 1000) as u32,
            cumulative_advanced: true,
            flightsize_before: window,
            flightsize_after: 0,
            latest_rtt: Some(milliseconds * MS),
            ..AckSample::default()
        });
        it.cwnd() - window
    }

    /// With dm = 100 ms, alpha at 51 ms is 2.97/9.7 x 100 / (2.97/9.7 x 100 / 10 - 1 + 51), which
    /// is 0.576, and at 100 ms it is 0.3.
    #[test]
    fn growth_falls_as_delay_rises() {
        let mut it = control(40_000);
        assert_eq!(round(&mut it, 100), 1000, "nothing known: as the base");
        assert_eq!(
            round(&mut it, 100),
            10_000,
            "no delay yet: alpha is greatest"
        );
        round(&mut it, 200);
        assert!(
            (it.alpha - 0.3).abs() < 1e-12 && it.beta == 0.5,
            "{}",
            it.alpha
        );
        round(&mut it, 151);
        let (kappa_1, kappa_2) = (99.0 * 3.0 / 9.7, 99.0 * 0.3 / 9.7 - 1.0);
        assert!((it.alpha - kappa_1 / (kappa_2 + 51.0)).abs() < 1e-9);
        assert!((it.beta - (0.125 + 0.375 * 41.0 / 70.0)).abs() < 1e-9);
    }

    #[test]
    fn growth_is_greatest_again_after_five_quiet_rounds() {
        let mut it = control(40_000);
        round(&mut it, 100);
        round(&mut it, 200);
        for quiet in 1..=5 {
            round(&mut it, 100);
            assert_eq!(it.alpha == ALPHA_MAX, quiet == 5, "{quiet}");
        }
    }

    #[test]
    fn a_loss_takes_an_eighth_without_delay_and_half_of_a_small_window() {
        let mut it = control(40_000);
        round(&mut it, 100);
        round(&mut it, 200);
        round(&mut it, 100);
        it.base.set_cwnd(80_000.0);
        it.on_loss(0, LossCause::FastRetransmit, 80_000);
        assert_eq!(it.cwnd(), 70_000);
        let mut small = control(14_000);
        round(&mut small, 100);
        small.base.set_cwnd(14_000.0);
        small.on_loss(0, LossCause::FastRetransmit, 14_000);
        assert_eq!(small.cwnd(), 7000);
    }
}
