//! Hybla (C. Caini and R. Firrincieli, "TCP Hybla: a TCP enhancement for heterogeneous networks",
//! IJSCN 2004): on a path with a long round-trip time, the window grows as fast in real time as on
//! a path of 25 ms.
//!
//! With `rho = RTT / RTT0`, at least 1, an acknowledgement adds `2^rho - 1` segments in slow start
//! and `rho^2 / cwnd` in congestion avoidance. RTT is the minimum of the smoothed round-trip time,
//! and RTT0 is 25 ms. The paper sets the first ssthresh from a measured bandwidth. Here it is that
//! of the base, so slow start may overshoot if the receive window is large.

use anabranch_transport::{Nanos, time::MILLISECOND};

use crate::algorithm::{Algorithm, Requirement};
use crate::fractional_window::FractionalWindow;
use crate::{AckSample, CongestionControl, LossCause, WindowControl};

/// Declaration of the algorithm `hybla`.
pub static ALGORITHM: Algorithm = Algorithm {
    name: "hybla",
    about: "cwnd grows as over a round trip of 25 ms, however long it is (Caini and Firrincieli 2004)",
    only: None,
    needs: Requirement::Nothing,
    properties: &[],
    make: &|base, _| Box::new(Hybla::new(base)),
};

/// Round-trip time of the reference path, nanoseconds.
const RTT0: Nanos = 25 * MILLISECOND;
/// Maximum window in segments, because exponential growth needs a limit.
const MAX_SEGMENTS: f64 = 1e6;

/// Controller of Hybla; the conditions for growth and the response to losses are those of `Base`.
#[derive(Clone, Debug)]
pub struct Hybla<Base> {
    base: Base,
    least: Option<Nanos>,
    rho: f64,
    /// Growth per acknowledgement in slow start, `2^rho - 1` segments.
    burst: f64,
    /// Growth that has not been applied yet, because windows are whole bytes.
    fraction: FractionalWindow,
}

/// `2^exponent` for an exponent of 0 or more. Integer powers are computed by doubling, and the
/// remainder by square roots of two, which are the same on every machine.
fn power_of_two(exponent: f64) -> f64 {
    let exponent = exponent.clamp(0.0, 64.0);
    let mut power = 1.0;
    for _ in 0..exponent as u32 {
        power *= 2.0;
    }
    let (mut rest, mut root) = (exponent.fract(), 2.0_f64);
    for _ in 0..40 {
        rest *= 2.0;
        root = root.sqrt();
        if rest >= 1.0 {
            rest -= 1.0;
            power *= root;
        }
    }
    power
}

impl<Base: WindowControl> Hybla<Base> {
    /// Creates a controller for a new path.
    pub fn new(base: Base) -> Self {
        Self {
            base,
            least: None,
            rho: 1.0,
            burst: 1.0,
            fraction: FractionalWindow::default(),
        }
    }

    fn learn(&mut self, srtt: Nanos) {
        if self.least.is_none_or(|least| srtt < least) {
            self.least = Some(srtt);
            self.rho = (srtt as f64 / RTT0 as f64).max(1.0);
            self.burst = power_of_two(self.rho) - 1.0;
        }
    }

    /// Reduces a window that is far above the bytes in flight, before the response to a loss. If no
    /// data is in flight, the window is still at least the minimum ssthresh.
    fn find_flight(&mut self, flightsize: u64) {
        let most = (flightsize as f64).max(self.base.least_ssthresh() as f64);
        self.base.cap_cwnd(most);
    }
}

impl<Base: WindowControl> CongestionControl for Hybla<Base> {
    fn on_sent(&mut self, now: Nanos, bytes: u64, flightsize: u64) {
        self.base.on_sent(now, bytes, flightsize);
    }

    fn on_ack(&mut self, ack: &AckSample) {
        if let Some(srtt) = ack.srtt {
            self.learn(srtt);
        }
        let factor = if self.base.in_slow_start() {
            self.burst
        } else {
            self.rho * self.rho
        };
        let before = self.base.cwnd_exact();
        self.base.on_ack(ack);
        let grown = self.base.cwnd_exact() - before;
        if grown > 0.0 {
            let earned = self.fraction.earn(grown * factor);
            let most = MAX_SEGMENTS * self.base.unit() as f64;
            self.base.set_cwnd((before + earned).min(most.max(before)));
        }
    }

    fn on_ecn(&mut self, now: Nanos, flightsize: u64) {
        self.find_flight(flightsize);
        self.base.on_ecn(now, flightsize);
    }

    fn on_loss(&mut self, now: Nanos, cause: LossCause, flightsize: u64) {
        self.fraction.clear();
        self.find_flight(flightsize);
        self.base.on_loss(now, cause, flightsize);
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

    fn control(cwnd: u64, ssthresh: u64) -> Hybla<SctpNewReno> {
        Hybla::new(SctpNewReno::new(SctpParameters {
            unit: 1000,
            initial_cwnd: cwnd,
            initial_ssthresh: ssthresh,
            floor_units: 2,
            growth_needs_full_cwnd: false,
            ..SctpParameters::default()
        }))
    }

    fn ack(bytes: u64, milliseconds: u64) -> AckSample {
        AckSample {
            bytes_acked: bytes,
            segments_acked: 1,
            cumulative_advanced: true,
            flightsize_after: 1,
            srtt: Some(milliseconds * MILLISECOND),
            ..AckSample::default()
        }
    }

    #[test]
    fn powers_of_two() {
        for (exponent, power) in [
            (0.0, 1.0),
            (1.0, 2.0),
            (0.5, 2.0_f64.sqrt()),
            (10.25, 1_217.748_085_762_786_3),
        ] {
            let found = power_of_two(exponent);
            assert!((found / power - 1.0).abs() < 1e-10, "{exponent}: {found}");
        }
    }

    /// At 75 ms rho is 3: an acknowledgement adds 7 segments in slow start, and acknowledgements of
    /// one window add 9 segments in congestion avoidance.
    #[test]
    fn growth_is_that_of_a_path_of_25_ms() {
        let mut starting = control(4000, 1_000_000);
        starting.on_ack(&ack(1000, 75));
        assert_eq!(starting.cwnd(), 11_000);
        let mut avoiding = control(10_000, 1);
        avoiding.on_ack(&ack(10_000, 75));
        assert_eq!(avoiding.cwnd(), 19_000);
    }

    #[test]
    fn a_short_path_is_as_the_base_and_rho_falls_only() {
        let mut it = control(4000, 1_000_000);
        it.on_ack(&ack(1000, 10));
        assert_eq!(it.cwnd(), 5000);
        it.on_ack(&ack(1000, 100));
        assert_eq!(it.cwnd(), 6000);
    }

    /// At a round-trip time of 600 ms, an acknowledgement in slow start would add 2^24 segments, so
    /// the window is limited. After a loss the window is half of the bytes in flight, and not half
    /// of the previous window.
    #[test]
    fn the_window_has_an_end_and_a_loss_finds_the_flight() {
        let mut it = control(4000, 1 << 60);
        it.on_ack(&ack(1000, 600));
        assert_eq!(it.cwnd(), 1_000_000_000);
        it.on_loss(0, LossCause::FastRetransmit, 50_000);
        assert_eq!((it.cwnd(), it.ssthresh()), (25_000, 25_000));
    }
}
