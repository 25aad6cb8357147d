//! LIA, the linked increases of RFC 6356: in congestion avoidance all paths together are no more
//! aggressive than one flow on the best of them. Slow start and losses are those of the base.

use anabranch_transport::Nanos;

use crate::algorithm::{Algorithm, Needs, Protocol};
use crate::credit::Credit;
use crate::{AckSample, Adjustable, CongestionControl, LossCause, Pool};

/// The algorithm as specs name it.
pub static ALGORITHM: Algorithm = Algorithm {
    name: "lia",
    about: "with `cmt`: all paths together grow no faster than one flow on the best of them (linked increases, RFC 6356)",
    only: Some(Protocol::Sctp),
    needs: Needs::SeveralPaths,
    properties: &[],
    make: &|base, _| Box::new(Lia::new(base)),
};

/// Linked increases over the rules of `Base`. On a single path it behaves like `Base`.
#[derive(Clone, Debug)]
pub struct Lia<Base> {
    base: Base,
    pool: Option<Pool>,
    /// Accumulated growth below one byte.
    credit: Credit,
}

impl<Base: Adjustable> Lia<Base> {
    /// A controller for a new path.
    pub fn new(base: Base) -> Self {
        Self {
            base,
            pool: None,
            credit: Credit::default(),
        }
    }

    /// The path's fraction of the growth of `Base`: `alpha cwnd / cwnd_total` (RFC 6356 §3), at
    /// most 1.
    fn share(&self, cwnd: f64) -> f64 {
        match self.pool {
            Some(pool) if pool.rate > 0.0 => (cwnd * pool.best / (pool.rate * pool.rate)).min(1.0),
            _ => 1.0,
        }
    }
}

impl<Base: Adjustable> CongestionControl for Lia<Base> {
    fn on_sent(&mut self, now: Nanos, bytes: u64, flightsize: u64) {
        self.base.on_sent(now, bytes, flightsize);
    }

    fn on_pool(&mut self, pool: &Pool) {
        self.pool = Some(*pool);
    }

    fn on_ack(&mut self, ack: &AckSample) {
        let avoiding = !self.base.in_slow_start();
        let before = self.base.cwnd_exact();
        self.base.on_ack(ack);
        let grown = self.base.cwnd_exact() - before;
        if avoiding && grown > 0.0 {
            let earned = self.credit.earn(grown * self.share(before));
            self.base.set_cwnd(before + earned);
        }
    }

    fn on_ecn(&mut self, now: Nanos, flightsize: u64) {
        self.base.on_ecn(now, flightsize);
    }

    fn on_loss(&mut self, now: Nanos, cause: LossCause, flightsize: u64) {
        self.base.on_loss(now, cause, flightsize);
        self.credit.clear();
    }

    rest_of_base!();

    fn name(&self) -> &'static str {
        "lia"
    }
}

#[cfg(test)]
mod tests;
