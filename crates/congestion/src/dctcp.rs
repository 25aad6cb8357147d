//! DCTCP (RFC 8257): the reduction of the window is proportional to the fraction of its bytes that
//! were marked.
//!
//! Without accurate ECN (RFC 9768) both ends must use DCTCP. It is not negotiated (§3.5), and the
//! receiver must echo each mark (§3.2). Growth, and the response to losses and timeouts, are those
//! of the base.

use anabranch_transport::Nanos;

use crate::algorithm::{Algorithm, Protocol, Requirement};
use crate::round_counter::RoundCounter;
use crate::{AckSample, CongestionControl, LossCause, WindowControl};

/// Declaration of the algorithm `dctcp`. It is for TCP only. In SCTP, ECNE reports only one mark
/// per window, so the marked fraction is unknown.
pub static ALGORITHM: Algorithm = Algorithm {
    name: "dctcp",
    about: "a mark costs half of the marked share of the window; both ends, with `ecn` (RFC 8257)",
    only: Some(Protocol::Tcp),
    needs: Requirement::Nothing,
    properties: &[],
    make: &|base, _| Box::new(Dctcp::new(base)),
};

/// Weight of a new fraction in the mean (g, §4.2).
const GAIN: f64 = 1.0 / 16.0;

/// Controller of DCTCP, with the growth of `Base`.
#[derive(Clone, Debug)]
pub struct Dctcp<Base> {
    base: Base,
    rounds: RoundCounter,
    /// Mean of the marked fraction (DCTCP.Alpha), 0 to 1; initially 1 (§3.3).
    share: f64,
    /// Bytes acknowledged in the current round, and the number of them that were reported as
    /// marked.
    acked: u64,
    marked: u64,
}

impl<Base: WindowControl> Dctcp<Base> {
    /// Creates a controller for a new path.
    pub fn new(base: Base) -> Self {
        Self {
            base,
            rounds: RoundCounter::default(),
            share: 1.0,
            acked: 0,
            marked: 0,
        }
    }

    /// Estimate of the marked fraction, 0 to 1.
    pub fn share(&self) -> f64 {
        self.share
    }
}

impl<Base: WindowControl> CongestionControl for Dctcp<Base> {
    fn on_sent(&mut self, now: Nanos, bytes: u64, flightsize: u64) {
        self.rounds.on_sent(bytes);
        self.base.on_sent(now, bytes, flightsize);
    }

    /// Only operations are used that IEEE 754 rounds correctly, so the result is the same on every
    /// platform.
    fn on_ack(&mut self, ack: &AckSample) {
        self.acked += ack.bytes_acked;
        self.marked += ack.bytes_marked;
        if self.rounds.ended(ack) && self.acked > 0 {
            let seen = (self.marked as f64 / self.acked as f64).min(1.0);
            self.share = (1.0 - GAIN) * self.share + GAIN * seen;
            (self.acked, self.marked) = (0, 0);
        }
        self.base.on_ack(ack);
    }

    fn on_ecn(&mut self, _now: Nanos, _flightsize: u64) {
        let window = self.base.cwnd_exact();
        let left = window * (1.0 - self.share / 2.0);
        self.base.reduce_to(left, LossCause::FastRetransmit);
        self.base.cap_cwnd(window);
    }

    fn on_loss(&mut self, now: Nanos, cause: LossCause, flightsize: u64) {
        self.base.on_loss(now, cause, flightsize);
    }

    fn counts_marks(&self) -> bool {
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
    use crate::tcp_newreno::{Growth, HalvingBasis, TcpNewReno, TcpNewRenoConfig};

    fn control() -> Dctcp<TcpNewReno> {
        Dctcp::new(TcpNewReno::new(TcpNewRenoConfig {
            segment: 1000,
            initial_window: 10.0,
            initial_ssthresh: 10.0,
            restart_window: None,
            growth: Growth::PerAck,
            halving_basis: HalvingBasis::FlightSize,
            integer_halving: false,
            cwnd_floor: true,
            whole_segments: false,
        }))
    }

    /// Runs a round of ten segments, the first `marked` of which were marked. The window does not
    /// grow, because the acknowledgements are selective: the cumulative acknowledgement does not
    /// advance.
    fn round(it: &mut Dctcp<TcpNewReno>, marked: usize) {
        for segment in 0..10 {
            it.on_sent(0, 1000, 10_000);
            it.on_ack(&AckSample {
                bytes_acked: 1000,
                segments_acked: 1,
                flightsize_before: 10_000,
                flightsize_after: 9000,
                marked: segment < marked,
                bytes_marked: if segment < marked { 1000 } else { 0 },
                ..AckSample::default()
            });
        }
    }

    /// The new mean is (1 - 1/16) times the old mean, plus 1/16 times the new fraction (§3.3,
    /// equation 1).
    #[test]
    fn the_share_is_a_mean_over_rounds() {
        let mut it = control();
        let mut expected = 1.0;
        // The first round begins with the first acknowledgement.
        round(&mut it, 0);
        round(&mut it, 0);
        let before = it.share();
        assert!(before < 1.0, "{before}");
        for marked in [5, 10, 0] {
            expected = if marked == 5 { before } else { expected };
            (0..40).for_each(|_| round(&mut it, marked));
            let settled = marked as f64 / 10.0;
            assert!(
                (it.share() - settled).abs() < 0.08,
                "{marked}: {}",
                it.share()
            );
        }
        let kept = it.share();
        round(&mut it, 0);
        assert!((it.share() - kept * 15.0 / 16.0).abs() < 0.01);
    }

    /// The new window is cwnd x (1 - fraction / 2). If all bytes are marked the window is halved,
    /// and if a quarter is marked it is reduced by an eighth (§3.4, equation 2). A loss halves the
    /// window.
    #[test]
    fn a_mark_costs_half_of_the_share_and_a_loss_half() {
        let mut it = control();
        it.on_ecn(0, 10_000);
        assert_eq!((it.cwnd(), it.ssthresh()), (5000, 5000));
        let mut it = control();
        it.share = 0.25;
        it.on_ecn(0, 10_000);
        assert_eq!((it.cwnd(), it.ssthresh()), (8750, 8750));
        it.on_loss(0, LossCause::FastRetransmit, 8000);
        assert_eq!(it.cwnd(), 4000);
        it.on_loss(0, LossCause::Timeout, 4000);
        assert_eq!((it.cwnd(), it.ssthresh(), it.share), (1000, 2000, 0.25));
    }

    #[test]
    fn a_small_window_does_not_grow_by_a_mark() {
        let mut it = control();
        it.on_loss(0, LossCause::Timeout, 10_000);
        it.on_ecn(0, 1000);
        assert_eq!(it.cwnd(), 1000);
    }
}
