//! Westwood+ (Grieco and Mascolo, CCR 2004; after Mascolo et al., Mobicom 2001): the window grows
//! by the rules of the base. A loss does not halve it, but sets it to the estimated capacity of the
//! path.

use anabranch_transport::{Nanos, time};

use crate::algorithm::{Algorithm, Requirement};
use crate::estimator::PathEstimator;
use crate::westwood_rate::{RateParameters, WestwoodRate};
use crate::{AckSample, CongestionControl, LossCause, WindowControl};

/// Declaration of the algorithm `westwood`.
pub static ALGORITHM: Algorithm = Algorithm {
    name: "westwood",
    about: "cwnd grows as by default; a loss sets ssthresh to rate x RTTmin (Westwood+, Grieco and Mascolo 2004)",
    only: None,
    needs: Requirement::Nothing,
    properties: &[],
    make: &|base, numbers| Box::new(Westwood::new(base, numbers.get())),
};

/// Controller of Westwood, with the growth of `Base`. Its response to a loss (faster recovery)
/// depends on the detection:
///
/// - fast retransmit: `ssthresh = rate x RTTmin`, and cwnd is reduced to ssthresh if it is larger;
/// - timeout: the same ssthresh, and cwnd is the loss window of `Base`.
///
/// ssthresh is never below the minimum of `Base`. Before the first estimate the response to a loss
/// is that of `Base`.
#[derive(Clone, Debug)]
pub struct Westwood<Base> {
    base: Base,
    rate: WestwoodRate,
    rtt_min: Option<Nanos>,
}

impl<Base: WindowControl> Westwood<Base> {
    /// Creates a controller for a new path.
    pub fn new(base: Base, rate: RateParameters) -> Self {
        Self {
            base,
            rate: WestwoodRate::new(rate),
            rtt_min: None,
        }
    }

    /// `rate x RTTmin`, in bytes.
    fn carried(&self) -> Option<f64> {
        Some(self.rate.rate()? * time::seconds(self.rtt_min?))
    }
}

impl<Base: WindowControl> CongestionControl for Westwood<Base> {
    fn on_sent(&mut self, now: Nanos, bytes: u64, flightsize: u64) {
        self.base.on_sent(now, bytes, flightsize);
    }

    fn on_ack(&mut self, ack: &AckSample) {
        if let Some(rtt) = ack.rtt {
            self.rtt_min = Some(self.rtt_min.map_or(rtt, |least| least.min(rtt)));
        }
        self.rate.on_ack(ack);
        self.base.on_ack(ack);
    }

    fn on_ecn(&mut self, now: Nanos, flightsize: u64) {
        let before = self.cwnd_exact();
        self.on_loss(now, LossCause::FastRetransmit, flightsize);
        self.base.cap_cwnd(before);
    }

    fn on_loss(&mut self, now: Nanos, cause: LossCause, flightsize: u64) {
        let cwnd = self.base.cwnd_exact();
        self.rate.advance(now);
        self.base.on_loss(now, cause, flightsize);
        let Some(carried) = self.carried() else {
            return;
        };
        let ssthresh = carried.max(self.base.least_ssthresh() as f64);
        self.base.set_ssthresh(ssthresh);
        if cause == LossCause::FastRetransmit {
            self.base.set_cwnd(cwnd.min(ssthresh));
        }
    }

    rest_of_base!();

    fn name(&self) -> &'static str {
        "westwood"
    }
}

#[cfg(test)]
mod tests;
