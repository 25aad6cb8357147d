//! OLIA, the opportunistic linked increases algorithm (R. Khalili, N. Gast, M. Popovic and J.-Y. Le
//! Boudec, "MPTCP Is Not Pareto-Optimal: Performance Issues and a Possible Solution", IEEE/ACM
//! Transactions on Networking 21(5), 2013; draft-khalili-mptcp-congestion-control). All paths
//! together grow like one flow, and window is moved between paths so that the best paths have large
//! windows. Slow start and the response to losses are those of the base, except for the minimum
//! ssthresh.

use anabranch_transport::Nanos;

use crate::algorithm::{Algorithm, Protocol, Requirement};
use crate::fractional_window::FractionalWindow;
use crate::{AckSample, CongestionControl, CoupledPaths, LossCause, WindowControl};

/// Declaration of the algorithm `olia`.
pub static ALGORITHM: Algorithm = Algorithm {
    name: "olia",
    about: "with `cmt`: all paths together grow as one flow, the best paths at the cost of the largest windows (opportunistic linked increases, Khalili et al. 2013)",
    only: Some(Protocol::Sctp),
    needs: Requirement::SeveralPaths,
    properties: &[],
    make: &|base, _| Box::new(Olia::new(base)),
};

/// Controller of OLIA, built on the rules of `Base`. On a single path it behaves like `Base`.
#[derive(Clone, Debug)]
pub struct Olia<Base> {
    base: Base,
    coupled: Option<CoupledPaths>,
    /// Growth that has not been applied yet, because windows are whole bytes.
    fraction: FractionalWindow,
    /// Bytes acknowledged between the last two losses, and bytes acknowledged since the last loss.
    between: [u64; 2],
}

impl<Base: WindowControl> Olia<Base> {
    /// Creates a controller for a new path.
    pub fn new(base: Base) -> Self {
        Self {
            base,
            coupled: None,
            fraction: FractionalWindow::default(),
            between: [0; 2],
        }
    }

    /// State of the paths; `None` if there is only one.
    fn several(&self) -> Option<&CoupledPaths> {
        self.coupled.as_ref().filter(|coupled| coupled.paths > 1)
    }

    /// Growth of the window as a multiple of the growth of `Base`. The first term is the fraction
    /// of the path: `1/w` per segment for a single path, and `(w / rtt^2) / (sum of w / rtt)^2` for
    /// one of several. The second term, `alpha`, moves window from the paths with the largest
    /// windows to the best paths with smaller windows.
    fn factor(&self) -> f64 {
        let Some(coupled) = self.several() else {
            return 1.0;
        };
        let share = match coupled.own.rate() {
            Some(own) if coupled.rate > 0.0 => (own / coupled.rate).powi(2),
            _ => 1.0,
        };
        share + alpha(coupled)
    }
}

/// Growth that a path gains (positive) or loses (negative) because window is moved, as a multiple
/// of the growth of `Base`. All paths that gain get `1 / paths` together, and all paths that lose
/// lose as much.
fn alpha(coupled: &CoupledPaths) -> f64 {
    if coupled.collected == 0 {
        return 0.0;
    }
    let each = |paths: usize| 1.0 / (coupled.paths * paths) as f64;
    if coupled.is_largest(&coupled.own) {
        -each(coupled.largest)
    } else if coupled.is_best(&coupled.own) {
        each(coupled.collected)
    } else {
        0.0
    }
}

impl<Base: WindowControl> CongestionControl for Olia<Base> {
    fn on_sent(&mut self, now: Nanos, bytes: u64, flightsize: u64) {
        self.base.on_sent(now, bytes, flightsize);
    }

    fn on_coupled_paths(&mut self, coupled: &CoupledPaths) {
        self.coupled = Some(*coupled);
    }

    fn on_ack(&mut self, ack: &AckSample) {
        self.between[1] += ack.bytes_acked;
        let avoiding = !self.base.in_slow_start();
        let before = self.base.cwnd_exact();
        self.base.on_ack(ack);
        let grown = self.base.cwnd_exact() - before;
        if avoiding && grown > 0.0 {
            let change = grown * self.factor();
            let after = if change < 0.0 {
                (before + change).floor().max(self.base.unit() as f64)
            } else {
                before + self.fraction.earn(change)
            };
            self.base.set_cwnd(after);
        }
    }

    fn on_ecn(&mut self, now: Nanos, flightsize: u64) {
        let before = self.cwnd_exact();
        self.on_loss(now, LossCause::FastRetransmit, flightsize);
        self.base.cap_cwnd(before);
    }

    fn on_loss(&mut self, now: Nanos, cause: LossCause, flightsize: u64) {
        let before = self.base.cwnd_exact();
        self.base.on_loss(now, cause, flightsize);
        if self.several().is_some() {
            // If there are several paths, the minimum of each is one segment.
            let left = (before / 2.0).floor().max(self.base.unit() as f64);
            self.base.set_ssthresh(left);
            if cause == LossCause::FastRetransmit {
                self.base.set_cwnd(left);
            }
        }
        self.between = [self.between[1], 0];
        self.fraction.clear();
    }

    fn between_losses(&self) -> u64 {
        self.between[0].max(self.between[1])
    }

    rest_of_base!();

    fn name(&self) -> &'static str {
        "olia"
    }
}

#[cfg(test)]
mod tests;
