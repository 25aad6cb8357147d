//! CMT/RP: resource pooling over the paths of one association (T. Dreibholz, M. Becke, J.
//! Pulinthanath and E. Rathgeb, "Applying TCP-Friendly Congestion Control to Concurrent Multipath
//! Transfer", AINA 2010). All paths together grow like one flow, each in proportion to its
//! slow-start threshold. A loss reduces the window of its path by half of the sum of all windows.

use anabranch_transport::Nanos;

use crate::algorithm::{Algorithm, Protocol, Requirement};
use crate::{AckSample, CongestionControl, CoupledPaths, LossCause, WindowControl};

/// Declaration of the algorithm `cmt_rp`.
pub static ALGORITHM: Algorithm = Algorithm {
    name: "cmt_rp",
    about: "with `cmt`: windows grow by their share of all ssthresh, and a loss takes half of all windows (CMT/RP, Dreibholz et al. 2010)",
    only: Some(Protocol::Sctp),
    needs: Requirement::SeveralPaths,
    properties: &[],
    make: &|base, _| Box::new(CmtRp::new(base)),
};

/// Controller of CMT/RP, built on the rules of `Base`. On a single path it behaves like `Base`.
#[derive(Clone, Debug)]
pub struct CmtRp<Base> {
    base: Base,
    coupled: Option<CoupledPaths>,
}

impl<Base: WindowControl> CmtRp<Base> {
    /// Creates a controller for a new path.
    pub fn new(base: Base) -> Self {
        Self {
            base,
            coupled: None,
        }
    }

    /// Slow-start threshold of the path as a fraction of the sum over all paths.
    fn share(&self) -> f64 {
        let own = self.base.ssthresh() as f64;
        let all = self
            .coupled
            .map_or(own, |coupled| coupled.ssthresh.max(own));
        if all > 0.0 { own / all } else { 1.0 }
    }
}

impl<Base: WindowControl> CongestionControl for CmtRp<Base> {
    fn on_sent(&mut self, now: Nanos, bytes: u64, flightsize: u64) {
        self.base.on_sent(now, bytes, flightsize);
    }

    fn on_coupled_paths(&mut self, coupled: &CoupledPaths) {
        self.coupled = Some(*coupled);
    }

    fn on_ack(&mut self, ack: &AckSample) {
        let (before, share) = (self.base.cwnd_exact(), self.share());
        self.base.on_ack(ack);
        let grown = self.base.cwnd_exact() - before;
        if grown > 0.0 {
            self.base.set_cwnd(before + (grown * share).ceil());
        }
    }

    fn on_ecn(&mut self, now: Nanos, flightsize: u64) {
        let before = self.cwnd_exact();
        self.on_loss(now, LossCause::FastRetransmit, flightsize);
        self.base.cap_cwnd(before);
    }

    fn on_loss(&mut self, now: Nanos, cause: LossCause, flightsize: u64) {
        let (before, share) = (self.base.cwnd_exact(), self.share());
        let all = self
            .coupled
            .map_or(before, |coupled| coupled.cwnd.max(before));
        self.base.on_loss(now, cause, flightsize);
        let least = (share * self.base.least_ssthresh() as f64).ceil();
        let unit = self.base.unit() as f64;
        let left = (before - all / 2.0).max(least).max(unit);
        self.base.set_ssthresh(left);
        if cause == LossCause::FastRetransmit {
            self.base.set_cwnd(left);
        }
    }

    rest_of_base!();

    fn name(&self) -> &'static str {
        "cmt_rp"
    }
}

#[cfg(test)]
mod tests;
