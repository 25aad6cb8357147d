//! RSCTP (Y.-K. Ho and Q.-H. Cheng, "An Adaptive SCTP Congestion Control Scheme Based on Receiver
//! Available Bandwidth Estimation", 2008). If the sending rate is below the bandwidth that the
//! receiver has measured, a loss is attributed to the radio link and not to congestion.
//!
//! The receiver's estimate arrives as [`Feedback`]. Without an estimate the algorithm behaves like
//! `Base`, for example because the peer does not support RSCTP or has not yet sent a report. For
//! details that the paper contradicts or does not specify, [`RsctpParameters`] has options.

pub mod receiver_estimate;

use anabranch_settings::spelled;
use anabranch_transport::{Nanos, time};

use crate::algorithm::{Algorithm, Property, Protocol, Requirement};
use crate::{AckSample, CongestionControl, Feedback, LossCause, WindowControl};

/// Declaration of the algorithm `rsctp`.
pub static ALGORITHM: Algorithm = Algorithm {
    name: "rsctp",
    about: "cwnd grows as with `sctp`; a loss below the bandwidth that the receiver reports is attributed to the radio and \
            reduces cwnd by beta sqrt(cwnd) only (Ho and Cheng 2008); needs the switch `rsctp` at both ends",
    only: Some(Protocol::Sctp),
    needs: Requirement::Reports,
    properties: &[Property::OwnUnusedWindow],
    make: &|base, numbers| Box::new(Rsctp::new(base, numbers.get())),
};

/// Cause to which a loss is attributed (ho2008 §3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossAttribution {
    /// Congestion: the sending rate is above the bandwidth that the receiver measured.
    Congestion,
    /// Loss on the radio link: the sending rate is below the bandwidth that the receiver measured.
    Wireless,
}

impl LossAttribution {
    /// Value that the probe `loss_verdict` records; 0 if the cause is unknown.
    pub fn code(verdict: Option<Self>) -> f64 {
        match verdict {
            None => 0.0,
            Some(Self::Congestion) => 1.0,
            Some(Self::Wireless) => 2.0,
        }
    }

    /// Compares the sending rate `cwnd / srtt` with the bandwidth that the receiver reported, in
    /// bytes and bytes per second. `None` if either is unknown.
    pub fn of(cwnd: f64, srtt: Option<Nanos>, bandwidth: Option<f64>) -> Option<Self> {
        let (srtt, bandwidth) = (srtt.filter(|&srtt| srtt > 0)?, bandwidth?);
        // Equivalent to cwnd / srtt > bandwidth, but without the division.
        Some(if cwnd > bandwidth * time::seconds(srtt) {
            Self::Congestion
        } else {
            Self::Wireless
        })
    }
}

/// Unit of the window in `cwnd - beta sqrt(cwnd)`, which the paper does not specify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecreaseUnit {
    /// Segments, as binomial algorithms are defined. They are TCP-friendly with `k + l = 1` only if
    /// the increase (one segment per round trip) and the decrease use the same unit.
    Segments,
    /// Bytes, as in the variables of the ns-2 module. A window of 30,000 bytes is then reduced by
    /// only 35 bytes. A loss that is attributed to the radio link then has hardly any effect,
    /// whatever beta is. Section 4.2 of the paper also finds that beta has hardly any effect.
    Bytes,
}
spelled!(DecreaseUnit: DecreaseUnit::Segments = "segments", DecreaseUnit::Bytes = "bytes");

/// Time at which `ssthresh = estimate x RTT` is set. According to the paper's figure 3-7 it is set
/// whenever there is no loss. According to §3.5.1 losses set ssthresh to half the window, which the
/// next acknowledgement would then revert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SsthreshRule {
    /// With each report, unless data was lost since the previous report. Only a new estimate has
    /// information, and the value that a loss set is kept until an interval without loss.
    EachReport,
    /// With each acknowledgement outside of recovery, literally as in the paper's figure 3-7.
    EachAck,
    /// Never: only losses set ssthresh, as in standard SCTP.
    Never,
}
spelled!(SsthreshRule: SsthreshRule::EachReport = "each_report", SsthreshRule::EachAck = "each_ack",
    SsthreshRule::Never = "never");

/// Minimum ssthresh after congestion. It is two MTUs in the paper's §3.5.1 and figure 2-1, and one
/// MTU in figure 3-7.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionFloor {
    /// As in the profile ("RSCTP processes standard congestion control of SCTP"), so that RSCTP and
    /// SCTP with the same profile differ only in the attribution of losses.
    Profile,
    /// One unit.
    One,
    /// Two units.
    Two,
}
spelled!(CongestionFloor: CongestionFloor::Profile = "profile", CongestionFloor::One = "one",
    CongestionFloor::Two = "two");

/// Parameters of [`Rsctp`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RsctpParameters {
    /// Beta of `cwnd - beta sqrt(cwnd)`, above 0 and at most 1; the paper uses 0.2.
    pub beta: f64,
    /// Unit of the window in this formula.
    pub unit: DecreaseUnit,
    /// Times at which the estimate sets ssthresh.
    pub ssthresh: SsthreshRule,
    /// Minimum ssthresh after congestion.
    pub floor: CongestionFloor,
    /// Whether a report about a path that carries no new data sets its cwnd to `estimate x RTT`
    /// (§3.2).
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

/// Controller of RSCTP, with the growth of `Base`. Its response to a loss depends on the cause:
///
/// - congestion, or no estimate: the reduction of `Base`;
/// - wireless: `cwnd - beta sqrt(cwnd)`, also at a timeout, but not below one unit; ssthresh does
///   not change.
#[derive(Clone, Debug)]
pub struct Rsctp<Base> {
    base: Base,
    parameters: RsctpParameters,
    /// Initial cwnd; a report never sets a smaller value on an unused path.
    initial_cwnd: f64,
    /// Bandwidth that the receiver reported, bytes per second.
    bandwidth: Option<f64>,
    srtt: Option<Nanos>,
    lost_since_report: bool,
}

impl<Base: WindowControl> Rsctp<Base> {
    /// Creates a controller for a new path.
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

    /// Cause to which a loss would be attributed now; `None` if a measurement is missing.
    pub fn judge(&self) -> Option<LossAttribution> {
        LossAttribution::of(self.base.cwnd_exact(), self.srtt, self.bandwidth)
    }

    /// `estimate x RTT`, in bytes.
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
        // The window permits at least one segment, but a loss must not increase a smaller window.
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

    /// Routers set marks because of congestion, so the receiver's estimate is ignored.
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
        // A lost HEARTBEAT that is attributed to congestion has no effect, because the paper's
        // figure 3-7 has no branch for this case.
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
