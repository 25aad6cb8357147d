//! RSCTP (Y.-K. Ho and Q.-H. Cheng, "An Adaptive SCTP Congestion Control Scheme Based on Receiver
//! Available Bandwidth Estimation", 2008): a loss at a sending rate below the bandwidth measured by
//! the receiver is attributed to the radio link, not to congestion.
//!
//! The receiver's estimate arrives as [`Feedback`]; without one (because the peer does not support
//! RSCTP, or has not answered yet) the algorithm behaves like `Base`. If the paper contradicts
//! itself or does not specify a detail, [`RsctpParameters`] has an option.

pub mod receiver_estimate;

use anabranch_settings::spelled;
use anabranch_transport::{Nanos, time};

use crate::algorithm::{Algorithm, Needs, Property, Protocol};
use crate::{AckSample, CongestionControl, Feedback, LossCause, WindowControl};

/// The algorithm as specs name it.
pub static ALGORITHM: Algorithm = Algorithm {
    name: "rsctp",
    about: "cwnd grows as with `sctp`; a loss below the bandwidth that the receiver reports is attributed to the radio and \
            reduces cwnd by beta sqrt(cwnd) only (Ho and Cheng 2008); needs the switch `rsctp` at both ends",
    only: Some(Protocol::Sctp),
    needs: Needs::Reports,
    properties: &[Property::OwnUnusedWindow],
    make: &|base, numbers| Box::new(Rsctp::new(base, numbers.get())),
};

/// The cause to which a loss is attributed (ho2008 §3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossAttribution {
    /// The sending rate is above the receiver's bandwidth.
    Congestion,
    /// The sending rate is below it: a loss of the radio link.
    Wireless,
}

impl LossAttribution {
    /// The value that the probe `loss_verdict` records; 0 without a verdict.
    pub fn code(verdict: Option<Self>) -> f64 {
        match verdict {
            None => 0.0,
            Some(LossAttribution::Congestion) => 1.0,
            Some(LossAttribution::Wireless) => 2.0,
        }
    }

    /// Compares the sending rate `cwnd / srtt` with the bandwidth reported by the receiver, in
    /// bytes and bytes per second. `None` if either is unknown.
    pub fn of(cwnd: f64, srtt: Option<Nanos>, bandwidth: Option<f64>) -> Option<Self> {
        let (srtt, bandwidth) = (srtt.filter(|&srtt| srtt > 0)?, bandwidth?);
        // Avoids the division in cwnd / srtt > bandwidth.
        Some(if cwnd > bandwidth * time::seconds(srtt) {
            LossAttribution::Congestion
        } else {
            LossAttribution::Wireless
        })
    }
}

/// The unit of the window in `cwnd - beta sqrt(cwnd)`, which the paper does not specify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecreaseUnit {
    /// Segments, as in the definition of binomial algorithms: `k + l = 1` is TCP-friendly only if
    /// the increase (one segment per round trip) and the decrease use the same unit.
    Segments,
    /// Bytes, as in the variables of ns-2's module. 30,000 bytes are then reduced by 35: a loss
    /// attributed to the radio link has hardly any effect, and neither has beta, which is the
    /// result of the paper's §4.2.
    Bytes,
}
spelled!(DecreaseUnit: DecreaseUnit::Segments = "segments", DecreaseUnit::Bytes = "bytes");

/// When `ssthresh = estimate x RTT` is set. According to Fig. 3-7 it is set whenever there is no
/// loss; according to §3.5.1 losses set ssthresh to half the window, which the next acknowledgement
/// would then revert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SsthreshRule {
    /// With each report, unless data was lost since the previous report: only a new estimate
    /// carries information, and the value set by a loss is kept until an interval without loss.
    EachReport,
    /// With each acknowledgement outside of recovery, literally as in Fig. 3-7.
    EachAck,
    /// Never: only losses set ssthresh, as in standard SCTP.
    Never,
}
spelled!(SsthreshRule: SsthreshRule::EachReport = "each_report", SsthreshRule::EachAck = "each_ack",
    SsthreshRule::Never = "never");

/// The minimum ssthresh after congestion. §3.5.1 and Fig. 2-1 say two MTU, Fig. 3-7 says one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionFloor {
    /// As in the profile ("RSCTP processes standard congestion control of SCTP"), so that RSCTP and
    /// SCTP under the same profile differ only in the verdict.
    Profile,
    /// One unit.
    One,
    /// Two units.
    Two,
}
spelled!(CongestionFloor: CongestionFloor::Profile = "profile", CongestionFloor::One = "one",
    CongestionFloor::Two = "two");

/// The parameters of [`Rsctp`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RsctpParameters {
    /// Beta of `cwnd - beta sqrt(cwnd)`, above 0 and at most 1; 0.2 in the paper.
    pub beta: f64,
    /// The unit of that formula.
    pub unit: DecreaseUnit,
    /// When the estimate sets ssthresh.
    pub ssthresh: SsthreshRule,
    /// The minimum ssthresh after congestion.
    pub floor: CongestionFloor,
    /// A report on a path that carries no new data sets its cwnd to `estimate x RTT` (§3.2).
    pub secondary_cwnd: bool,
}

impl Default for RsctpParameters {
    fn default() -> Self {
        Self {
            beta: 0.2,
            unit: DecreaseUnit::Segments,
            ssthresh: SsthreshRule::EachReport,
            floor: CongestionFloor::Profile,
            secondary_cwnd: true,
        }
    }
}

/// RSCTP with the growth of `Base`.
///
/// - congestion, or no estimate: the decrease of `Base`;
/// - wireless: `cwnd - beta sqrt(cwnd)`, also at a timeout, and never below one unit; ssthresh is
///   unchanged.
#[derive(Clone, Debug)]
pub struct Rsctp<Base> {
    base: Base,
    parameters: RsctpParameters,
    /// cwnd of an unused path: a report never sets a smaller value.
    initial_cwnd: f64,
    /// Bytes per second.
    bandwidth: Option<f64>,
    srtt: Option<Nanos>,
    lost_since_report: bool,
}

impl<Base: WindowControl> Rsctp<Base> {
    /// A controller for a new path.
    pub fn new(base: Base, parameters: RsctpParameters) -> Self {
        Self {
            initial_cwnd: base.cwnd_exact(),
            base,
            parameters,
            bandwidth: None,
            srtt: None,
            lost_since_report: false,
        }
    }

    /// The cause to which a loss would now be attributed; `None` if a measurement is missing.
    pub fn judge(&self) -> Option<LossAttribution> {
        LossAttribution::of(self.base.cwnd_exact(), self.srtt, self.bandwidth)
    }

    /// `estimate x RTT`, bytes.
    fn carried(&self) -> Option<f64> {
        Some(self.bandwidth? * time::seconds(self.srtt?))
    }

    fn set_ssthresh_by_estimate(&mut self) {
        if let Some(carried) = self.carried() {
            let least = self.base.least_ssthresh() as f64;
            self.base.set_ssthresh(carried.max(least));
        }
    }

    fn decrease_for_wireless(&mut self) {
        let cwnd = self.base.cwnd_exact();
        let segment = self.base.unit() as f64;
        let unit = match self.parameters.unit {
            DecreaseUnit::Segments => segment,
            DecreaseUnit::Bytes => 1.0,
        };
        let left = cwnd - self.parameters.beta * (cwnd / unit).sqrt() * unit;
        // A window below one segment still permits one; and a loss must not increase the window.
        self.base.set_cwnd(left.max(segment.min(cwnd)));
    }

    fn decrease_for_congestion(&mut self, now: Nanos, cause: LossCause, flightsize: u64) {
        let before = self.base.cwnd_exact();
        let ssthresh = self.base.ssthresh();
        self.base.on_loss(now, cause, flightsize);
        let unit = self.base.unit() as f64;
        if cause == LossCause::Timeout && before <= unit && self.base.ssthresh() == ssthresh {
            return; // the base ignores a repeated timeout
        }
        let floor = match self.parameters.floor {
            CongestionFloor::Profile => return,
            CongestionFloor::One => unit,
            CongestionFloor::Two => 2.0 * unit,
        };
        let halved = (before / 2.0).max(floor);
        self.base.set_ssthresh(halved);
        if cause == LossCause::FastRetransmit {
            self.base.set_cwnd(halved);
        }
    }
}

impl<Base: WindowControl> CongestionControl for Rsctp<Base> {
    fn loss_verdict(&self) -> Option<Option<LossAttribution>> {
        Some(self.judge())
    }

    fn on_sent(&mut self, now: Nanos, bytes: u64, flightsize: u64) {
        self.base.on_sent(now, bytes, flightsize);
    }

    fn on_ack(&mut self, ack: &AckSample) {
        self.srtt = ack.srtt.or(self.srtt);
        self.base.on_ack(ack);
        if self.parameters.ssthresh == SsthreshRule::EachAck && !ack.in_recovery {
            self.set_ssthresh_by_estimate();
        }
    }

    /// A router sets marks because of congestion, so the receiver's estimate is ignored.
    fn on_ecn(&mut self, now: Nanos, flightsize: u64) {
        self.lost_since_report = true;
        let before = self.cwnd_exact();
        self.decrease_for_congestion(now, LossCause::FastRetransmit, flightsize);
        self.base.cap_cwnd(before);
    }

    fn on_loss(&mut self, now: Nanos, cause: LossCause, flightsize: u64) {
        self.lost_since_report = true;
        match self.judge() {
            Some(LossAttribution::Wireless) => self.decrease_for_wireless(),
            Some(LossAttribution::Congestion) | None => {
                self.decrease_for_congestion(now, cause, flightsize)
            }
        }
    }

    fn on_heartbeat_lost(&mut self, _: Nanos) {
        self.lost_since_report = true;
        // Fig. 3-7 has no branch for it under congestion.
        if self.judge() == Some(LossAttribution::Wireless) {
            self.decrease_for_wireless();
        }
    }

    fn on_feedback(&mut self, now: Nanos, feedback: &Feedback) {
        self.base.on_feedback(now, feedback);
        self.srtt = feedback.srtt.or(self.srtt);
        if let Some(bandwidth) = feedback.available_bandwidth {
            self.bandwidth = Some(bandwidth);
            if feedback.carries_data {
                let rule = self.parameters.ssthresh == SsthreshRule::EachReport;
                if rule && !self.lost_since_report {
                    self.set_ssthresh_by_estimate();
                }
            } else if self.parameters.secondary_cwnd
                && let Some(carried) = self.carried()
            {
                let most = (feedback.peer_window as f64).max(self.initial_cwnd);
                self.base.set_cwnd(carried.clamp(self.initial_cwnd, most));
            }
        }
        self.lost_since_report = false;
    }

    windows_of_base!();

    fn name(&self) -> &'static str {
        "rsctp"
    }
}

#[cfg(test)]
mod tests;
