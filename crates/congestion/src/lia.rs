//! LIA, the linked increases algorithm of RFC 6356: in congestion avoidance, all paths together are
//! no more aggressive than one flow on the best path. Slow start and the response to losses are
//! those of the base.

use anabranch_transport::Nanos;

use crate::algorithm::{Algorithm, Protocol, Requirement};
use crate::fractional_window::FractionalWindow;
use crate::{AckSample, CongestionControl, CoupledPaths, LossCause, WindowControl};

/// Declaration of the algorithm `lia`.
pub static ALGORITHM: Algorithm = Algorithm {
    name: "lia",
    about: "with `cmt`: all paths together grow no faster than one flow on the best of them (linked increases, RFC 6356)",
    only: Some(Protocol::Sctp),
    needs: Requirement::SeveralPaths,
    properties: &[],
    make: &|base, _| Box::new(Lia::new(base)),
};

/// Controller of LIA, built on the rules of `Base`. On a single path it behaves like `Base`.
#[derive(Clone, Debug)]
pub struct Lia<Base> {
    base: Base,
    coupled: Option<CoupledPaths>,
    /// Growth that has not been applied yet, because windows are whole bytes.
    fraction: FractionalWindow,
}

impl<Base: WindowControl> Lia<Base> {
    /// Creates a controller for a new path.
    pub fn new(base: Base) -> Self {
        Self {
            base,
            coupled: None,
            fraction: FractionalWindow::default(),
        }
    }

    /// Fraction of the growth of `Base` that applies to the path: `alpha cwnd / cwnd_total` (RFC
    /// 6356 §3), at most 1.
    fn share(&self, cwnd: f64) -> f64 {
        match self.coupled {
            Some(coupled) if coupled.rate > 0.0 => {
                (cwnd * coupled.best / (coupled.rate * coupled.rate)).min(1.0)
            }
            _ => 1.0,
        }
    }
}

impl<Base: WindowControl> CongestionControl for Lia<Base> {
    fn on_sent(&mut self, now: Nanos, bytes: u64, flightsize: u64) {
        self.base.on_sent(now, bytes, flightsize);
    }

    fn on_coupled_paths(&mut self, coupled: &CoupledPaths) {
        self.coupled = Some(*coupled);
    }

    fn on_ack(&mut self, ack: &AckSample) {
        let avoiding = !self.base.in_slow_start();
        let before = self.base.cwnd_exact();
        self.base.on_ack(ack);
        let grown = self.base.cwnd_exact() - before;
        if avoiding && grown > 0.0 {
            let earned = self.fraction.earn(grown * self.share(before));
            self.base.set_cwnd(before + earned);
        }
    }

    fn on_ecn(&mut self, now: Nanos, flightsize: u64) {
        self.base.on_ecn(now, flightsize);
    }

    fn on_loss(&mut self, now: Nanos, cause: LossCause, flightsize: u64) {
        self.base.on_loss(now, cause, flightsize);
        self.fraction.clear();
    }

    rest_of_base!();

    fn name(&self) -> &'static str {
        "lia"
    }
}

#[cfg(test)]
mod tests;
