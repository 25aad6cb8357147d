//! The control of the notebook `own-congestion-control.ipynb`, in Rust: it ignores a loss while the
//! round-trip time is close to its minimum, because a full queue would have increased the time.

use anabranch_congestion::{
    AckSample, Algorithm, Base, CongestionControl, LossCause, Requirement, registry,
};
use anabranch_python::kinds::{self, Language};
use anabranch_transport::Nanos;
use pyo3::prelude::*;

/// Name of the algorithm in specs, and its construction from the protocol's own controller.
static SHORT_QUEUE: Algorithm = Algorithm {
    name: "short-queue",
    about: "halves only where the round-trip time tells of a queue",
    only: None,
    needs: Requirement::Nothing,
    properties: &[],
    make: &|base, _| Box::new(ShortQueue { base, seen: None }),
};

#[derive(Debug)]
struct ShortQueue {
    base: Base,
    /// The smallest round-trip time, and the last one.
    seen: Option<(Nanos, Nanos)>,
}

impl CongestionControl for ShortQueue {
    fn on_ack(&mut self, ack: &AckSample) {
        if let Some(rtt) = ack.rtt {
            let least = self.seen.map_or(rtt, |(least, _)| least.min(rtt));
            self.seen = Some((least, rtt));
        }
        self.base.on_ack(ack);
    }

    fn on_loss(&mut self, now: Nanos, cause: LossCause, flightsize: u64) {
        let short = |(least, last)| (last as f64) < 1.1 * least as f64;
        if cause == LossCause::FastRetransmit && self.seen.is_some_and(short) {
            return;
        }
        self.base.on_loss(now, cause, flightsize);
    }

    fn on_ecn(&mut self, now: Nanos, flightsize: u64) {
        self.base.on_ecn(now, flightsize);
    }

    fn on_idle(&mut self, now: Nanos, idle_for: Nanos, rto: Nanos) {
        self.base.on_idle(now, idle_for, rto);
    }

    fn on_app_limited(&mut self, now: Nanos) {
        self.base.on_app_limited(now);
    }

    fn on_mtu(&mut self, segment: u64) {
        self.base.on_mtu(segment);
    }

    fn cwnd(&self) -> u64 {
        self.base.cwnd()
    }

    fn cwnd_exact(&self) -> f64 {
        self.base.cwnd_exact()
    }

    fn ssthresh(&self) -> u64 {
        self.base.ssthresh()
    }

    fn name(&self) -> &'static str {
        SHORT_QUEUE.name
    }
}

/// The package's module, with one additional control.
#[pymodule]
fn short_queue(module: &Bound<'_, PyModule>) -> PyResult<()> {
    registry::add(&SHORT_QUEUE);
    // Cached runs are repeated after a change of this text.
    kinds::depends(SHORT_QUEUE.name, include_str!("lib.rs"), Language::Rust);
    anabranch_python::register(module)
}
