//! Veno (C. Fu and S. Liew, "TCP Veno: TCP Enhancement for Transmission over Wireless Access
//! Networks", JSAC 2003): a loss while few segments are queued is attributed to the radio link, and
//! reduces the window by a fifth and not by half.
//!
//! `N = cwnd (RTT - BaseRTT) / RTT`, in segments, is Vegas's estimate of the number of queued
//! segments. If N is at least 3, the window grows by a segment every other round trip, and a loss
//! halves it. Slow start and timeouts are those of the base.

use anabranch_transport::Nanos;

use crate::algorithm::{Algorithm, Property, Requirement};
use crate::fractional_window::FractionalWindow;
use crate::round_counter::RoundDelays;
use crate::{AckSample, CongestionControl, LossCause, WindowControl};

/// Declaration of the algorithm `veno`.
pub static ALGORITHM: Algorithm = Algorithm {
    name: "veno",
    about: "a loss with short queues costs a fifth of cwnd, not half (Fu and Liew 2003)",
    only: None,
    needs: Requirement::Nothing,
    properties: &[Property::AbsoluteScale],
    make: &|base, _| Box::new(Veno::new(base)),
};

/// Beta: number of queued segments from which on the path counts as congested.
const BETA: f64 = 3.0;
/// Factor by which a loss reduces the window on a path that is not congested.
const RANDOM_LOSS_LEAVES: f64 = 0.8;

/// Controller of Veno, with the growth of `Base`.
#[derive(Clone, Debug)]
pub struct Veno<Base> {
    base: Base,
    delays: RoundDelays,
    /// N of the last round, segments; `None` before the first measurement.
    backlog: Option<f64>,
    /// Growth that has not been applied yet, because windows are whole bytes.
    fraction: FractionalWindow,
}

impl<Base: WindowControl> Veno<Base> {
    /// Creates a controller for a new path.
    pub fn new(base: Base) -> Self {
        Self {
            base,
            delays: RoundDelays::default(),
            backlog: None,
            fraction: FractionalWindow::default(),
        }
    }

    /// Whether fewer than beta segments were queued in the last round trip; false before the first
    /// measurement.
    fn is_uncongested(&self) -> bool {
        self.backlog.is_some_and(|backlog| backlog < BETA)
    }
}

impl<Base: WindowControl> CongestionControl for Veno<Base> {
    fn on_sent(&mut self, now: Nanos, bytes: u64, flightsize: u64) {
        self.delays.on_sent(bytes);
        self.base.on_sent(now, bytes, flightsize);
    }

    fn on_ack(&mut self, ack: &AckSample) {
        let window = self.base.cwnd_exact();
        if let Some(seen) = self.delays.on_ack(ack) {
            let segments = window / self.base.unit().max(1) as f64;
            self.backlog = self.delays.backlog(segments, &seen).or(self.backlog);
        }
        let halved = !self.base.in_slow_start() && self.backlog.is_some() && !self.is_uncongested();
        self.base.on_ack(ack);
        let grown = self.base.cwnd_exact() - window;
        if halved && grown > 0.0 {
            let earned = self.fraction.earn(grown / 2.0);
            self.base.set_cwnd(window + earned);
        }
    }

    fn on_ecn(&mut self, now: Nanos, flightsize: u64) {
        self.base.on_ecn(now, flightsize); // a mark is not a loss of the radio link
    }

    fn on_loss(&mut self, now: Nanos, cause: LossCause, flightsize: u64) {
        let window = self.base.cwnd_exact();
        self.base.on_loss(now, cause, flightsize);
        if cause == LossCause::FastRetransmit && self.is_uncongested() {
            let left = RANDOM_LOSS_LEAVES * window.min(flightsize as f64);
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
    use crate::round_counter::bulk::Bulk;
    use crate::sctp_newreno::{SctpNewReno, SctpParameters};

    fn control() -> Bulk<Veno<SctpNewReno>> {
        Bulk::new(Veno::new(SctpNewReno::new(SctpParameters {
            unit: 1000,
            initial_cwnd: 20_000,
            initial_ssthresh: 1,
            floor_units: 2,
            ..SctpParameters::default()
        })))
    }

    /// The round trip is 100 ms without queues. At 110 ms 1.9 of 21 segments are queued, and at 130
    /// ms 4.8.
    #[test]
    fn a_loss_costs_a_fifth_where_queues_are_short_and_half_where_they_are_long() {
        let mut it = control();
        it.round(100);
        let window = it.round(110);
        let mut short = it.control.clone();
        short.on_loss(0, LossCause::FastRetransmit, window);
        assert_eq!(short.cwnd(), window * 4 / 5);
        assert_eq!(short.ssthresh(), window * 4 / 5);
        let mut marked = it.control.clone();
        marked.on_ecn(0, window);
        assert_eq!(marked.cwnd(), window / 2);
        let window = it.round(130);
        it.control.on_loss(0, LossCause::FastRetransmit, window);
        assert_eq!(it.control.cwnd(), window / 2);
    }

    /// If queues are long, the window grows half as fast as that of the base.
    #[test]
    fn growth_halves_where_queues_are_long() {
        let mut it = control();
        let mut plain = Bulk::new(it.control.base.clone());
        it.round(100);
        plain.round(100);
        let (before, plain_before) = (it.round(150), plain.round(150));
        (0..10).for_each(|_| {
            it.round(150);
            plain.round(150);
        });
        let (grown, plain) = (
            it.control.cwnd() - before,
            plain.control.cwnd() - plain_before,
        );
        assert!(
            plain >= 9000 && plain.abs_diff(2 * grown) <= 1000,
            "{grown} {plain}"
        );
    }

    #[test]
    fn nothing_measured_is_as_the_base() {
        let mut it = control();
        it.control.on_loss(0, LossCause::FastRetransmit, 20_000);
        assert_eq!(it.control.cwnd(), 10_000);
    }
}
