//! CUBIC (RFC 9438): the window is a cubic function of the time since the last loss, so its growth
//! does not depend on the round-trip time. It grows at least as fast as Reno's window. Slow start
//! is that of the base, with HyStart++ (RFC 9406).
//!
//! Windows are in segments internally. All arithmetic uses operations of IEEE 754, and no power or
//! logarithm functions of a library, so that a run is the same on every machine.

use anabranch_transport::{Nanos, time};

use crate::algorithm::{Algorithm, Property, Requirement};
use crate::hystart::HyStart;
use crate::{AckSample, CongestionControl, LossCause, WindowControl};

/// Declaration of the algorithm `cubic`.
pub static ALGORITHM: Algorithm = Algorithm {
    name: "cubic",
    about: "cwnd is a cubic function of the time since the last loss; HyStart++ ends slow start (RFC 9438, RFC 9406)",
    only: None,
    needs: Requirement::Nothing,
    properties: &[
        Property::OwnSlowStartExit,
        Property::OwnIncrease,
        Property::OwnFloor,
        Property::AbsoluteScale,
    ],
    make: &|base, numbers| Box::new(Cubic::new(base, numbers.get())),
};

/// Constant C of the cubic function, segments per cubic second (§5.1).
const C: f64 = 0.4;
/// Factor by which a loss reduces the window (§4.6).
const BETA: f64 = 0.7;
/// Growth of the estimate of Reno's window, in segments per round trip (§4.3): `3 (1 - BETA) / (1 +
/// BETA)`.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// Options of [`Cubic`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CubicParameters {
    /// Fast convergence: if a loss occurs before the window has reached its former value, the
    /// plateau is reduced further, so that new flows get bandwidth sooner (§4.7).
    pub fast_convergence: bool,
    /// Use HyStart++ in the initial slow start (RFC 9406).
    pub hystart: bool,
}

impl Default for CubicParameters {
    /// HyStart++ and fast convergence are enabled, as RFC 9438 recommends.
    fn default() -> Self {
        Self {
            fast_convergence: true,
            hystart: true,
        }
    }
}

/// A stage of congestion avoidance (§4.1.2), from one loss to the next. Windows are in segments.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// Plateau of the cubic function, `W_max`.
    plateau: f64,
    /// Time from the start of the stage until the function reaches the plateau, seconds (`K`).
    k: f64,
    /// Duration of the stage, without the times in which the window was not fully used (§5.8),
    /// nanoseconds.
    elapsed: Nanos,
    /// Estimate of Reno's window, `W_est`.
    reno: f64,
}

impl Epoch {
    fn new(window: f64, plateau: f64) -> Self {
        Self {
            plateau: plateau.max(window),
            k: cube_root((plateau - window) / C),
            elapsed: 0,
            reno: window,
        }
    }

    /// `W_cubic(t)`, equation 1, segments.
    fn at(&self, seconds: f64) -> f64 {
        let t = seconds - self.k;
        C * t * t * t + self.plateau
    }
}

/// Cube root by Newton's method, which approaches the root from above and ends when it no longer
/// decreases. The result is 0 for arguments that are not positive.
fn cube_root(of: f64) -> f64 {
    if of <= 0.0 {
        return 0.0;
    }
    let mut root = of.max(1.0);
    loop {
        let next = (2.0 * root + of / (root * root)) / 3.0;
        if next >= root {
            return root;
        }
        root = next;
    }
}

/// Controller of CUBIC, with the slow start of `Base`.
#[derive(Clone, Debug)]
pub struct Cubic<Base> {
    base: Base,
    parameters: CubicParameters,
    hystart: HyStart,
    epoch: Option<Epoch>,
    /// Window before the last loss, to which the next stage returns; `None` after a timeout and
    /// before the first loss (§4.8, §4.10).
    plateau: Option<f64>,
    /// Window at the last loss, `cwnd_prior`.
    prior: f64,
    /// Time of the last acknowledgement, or of the restart after a pause, nanoseconds.
    last: Nanos,
    /// Growth that has not been applied yet, because windows are whole bytes.
    credit: f64,
}

impl<Base: WindowControl> Cubic<Base> {
    /// Creates a controller for a new path.
    pub fn new(base: Base, parameters: CubicParameters) -> Self {
        let mut hystart = HyStart::default();
        if !parameters.hystart {
            hystart.end();
        }
        Self {
            base,
            parameters,
            hystart,
            epoch: None,
            plateau: None,
            prior: 0.0,
            last: 0,
            credit: 0.0,
        }
    }

    /// Whether the window is below ssthresh. RFC 9438 and the protocols leave open whether a window
    /// that equals ssthresh, as after a loss, is in slow start. Here it is in congestion avoidance,
    /// because SCTP's slow start (RFC 9260 §7.2.1) would then add a segment to the cubic function.
    fn in_slow_start(&self) -> bool {
        self.base.in_slow_start() && self.base.cwnd() < self.base.ssthresh()
    }

    fn unit(&self) -> f64 {
        self.base.unit().max(1) as f64
    }

    /// Growth in congestion avoidance (§4.2 to §4.5).
    fn avoid(&mut self, ack: &AckSample, since_last: Nanos) {
        let unit = self.unit();
        let cwnd = (self.base.cwnd_exact() + self.credit) / unit;
        let full = ack.flightsize_before as f64 + unit >= self.base.cwnd_exact();
        if ack.in_recovery || !ack.cumulative_advanced || ack.bytes_acked == 0 {
            return;
        }
        let plateau = self.plateau.unwrap_or(cwnd);
        let epoch = self.epoch.get_or_insert_with(|| Epoch::new(cwnd, plateau));
        if !full {
            return; // the window does not grow, and the time does not count (§5.8)
        }
        epoch.elapsed += since_last;
        let share = (ack.bytes_acked as f64 / unit / cwnd).min(1.0);
        // When the estimate has reached the window before the loss, it grows like Reno (§4.3).
        let alpha = if epoch.reno >= self.prior { 1.0 } else { ALPHA };
        epoch.reno += alpha * share;
        let elapsed = time::seconds(epoch.elapsed);
        let next = if epoch.at(elapsed) < epoch.reno {
            cwnd.max(epoch.reno)
        } else {
            let ahead = elapsed + ack.srtt.map_or(0.0, time::seconds);
            let target = epoch.at(ahead).clamp(cwnd, 1.5 * cwnd);
            // RFC 9438 adds `(target - cwnd) / cwnd` for each acknowledgement. Here this term is
            // multiplied by the number of acknowledged segments, so that the window reaches its
            // target in a round trip even if acknowledgements are delayed.
            cwnd + (target - cwnd) * share
        };
        let bytes = next * unit;
        self.credit = bytes.fract();
        self.base.set_cwnd(bytes.trunc());
    }
}

impl<Base: WindowControl> CongestionControl for Cubic<Base> {
    fn on_sent(&mut self, now: Nanos, bytes: u64, flightsize: u64) {
        self.hystart.on_sent(bytes);
        if flightsize <= bytes {
            self.last = now; // idle time does not count for a stage
        }
        self.base.on_sent(now, bytes, flightsize);
    }

    fn on_ack(&mut self, ack: &AckSample) {
        let since_last = ack.now.saturating_sub(self.last);
        self.last = ack.now;
        if self.in_slow_start() {
            self.epoch = None; // the last stage has ended
            let before = self.base.cwnd_exact();
            self.base.on_ack(ack);
            self.hystart.on_ack(ack, before, &mut self.base);
        } else {
            self.avoid(ack, since_last);
        }
    }

    fn on_ecn(&mut self, now: Nanos, flightsize: u64) {
        let before = self.cwnd_exact();
        self.on_loss(now, LossCause::FastRetransmit, flightsize);
        self.base.cap_cwnd(before);
    }

    fn on_loss(&mut self, now: Nanos, cause: LossCause, flightsize: u64) {
        let unit = self.unit();
        let before = self.base.cwnd_exact();
        let ssthresh = self.base.ssthresh();
        self.base.on_loss(now, cause, flightsize);
        self.hystart.end();
        (self.epoch, self.credit) = (None, 0.0);
        if cause == LossCause::Timeout && before <= unit && self.base.ssthresh() == ssthresh {
            return; // the base ignores a repeated timeout
        }
        let window = before / unit;
        let shrinks = self.plateau.is_some_and(|plateau| window < plateau);
        self.prior = window;
        self.plateau = match cause {
            LossCause::Timeout => None,
            _ if shrinks && self.parameters.fast_convergence => Some(window * (1.0 + BETA) / 2.0),
            _ => Some(window),
        };
        // The factor of §4.6 applies to the bytes in flight, or to the window before the loss if
        // that is smaller.
        self.base
            .reduce_to(BETA * before.min(flightsize as f64), cause);
    }

    fn wants_latest_rtt(&self) -> bool {
        !self.hystart.is_done()
    }

    rest_of_base!();

    fn name(&self) -> &'static str {
        ALGORITHM.name
    }
}

#[cfg(test)]
mod tests;
