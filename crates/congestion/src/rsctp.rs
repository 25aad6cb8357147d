//! The window of RSCTP (Y.-K. Ho and Q.-H. Cheng, "An Adaptive SCTP Congestion Control Scheme Based on Receiver Available
//! Bandwidth Estimation", 2008): a loss while less was sent than the receiver can take is the radio's, not congestion.
//!
//! The receiver's estimate comes as [`Feedback`]; without one (the peer does not speak RSCTP, or has not answered yet)
//! everything is as `Base` does it. Where the paper contradicts itself or is silent, [`RsctpParameters`] has a choice.

pub mod receiver_estimate;

use anabranch_settings::spelled;
use anabranch_transport::{Nanos, time};

use crate::algorithm::{Algorithm, Needs, Property, Protocol};
use crate::{AckSample, Adjustable, CongestionControl, Feedback, LossCause};

/// How specs name it.
pub static ALGORITHM: Algorithm = Algorithm {
    name: "rsctp",
    about: "cwnd grows as with `sctp`; a loss below the bandwidth that the receiver reports is attributed to the radio and \
            reduces cwnd by beta sqrt(cwnd) only (Ho and Cheng 2008); needs the switch `rsctp` at both ends",
    only: Some(Protocol::Sctp),
    needs: Needs::Reports,
    properties: &[Property::OwnUnusedWindow],
    make: &|base, numbers| Box::new(Rsctp::new(base, numbers.get())),
};

/// What a loss is put down to (ho2008 §3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// More was sent than the receiver was seen to take.
    Congestion,
    /// Less was sent: the loss is a radio's.
    Wireless,
}

impl Verdict {
    /// The value that the probe `loss_verdict` records; no verdict is 0.
    pub fn code(verdict: Option<Self>) -> f64 {
        match verdict {
            None => 0.0,
            Some(Verdict::Congestion) => 1.0,
            Some(Verdict::Wireless) => 2.0,
        }
    }

    /// Compares the sending rate `cwnd / srtt` with the bandwidth the receiver reported, bytes and bytes per second.
    /// `None` while either is unknown.
    pub fn of(cwnd: f64, srtt: Option<Nanos>, bandwidth: Option<f64>) -> Option<Self> {
        let (srtt, bandwidth) = (srtt.filter(|&srtt| srtt > 0)?, bandwidth?);
        // Without a division: cwnd / srtt > bandwidth.
        Some(if cwnd > bandwidth * time::seconds(srtt) {
            Verdict::Congestion
        } else {
            Verdict::Wireless
        })
    }
}

/// In what `cwnd - beta sqrt(cwnd)` counts the window; the paper does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecreaseUnit {
    /// Segments, as the binomial algorithms define the window: `k + l = 1` shares fairly with TCP only where the
    /// increase (one segment a round trip) and the decrease are in one unit.
    Segments,
    /// Bytes, as the variables of ns-2's module are. 30,000 bytes then fall by 35: a loss put down to the radio has
    /// hardly an effect, and beta none, which is what the paper's §4.2 found.
    Bytes,
}
spelled!(DecreaseUnit: DecreaseUnit::Segments = "segments", DecreaseUnit::Bytes = "bytes");

/// When `ssthresh = estimate x RTT` is set. Fig. 3-7 has it wherever there is no loss; §3.5.1 has losses set ssthresh to
/// half the window, which the next acknowledgement would then undo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SsthreshRule {
    /// With each report, unless something was lost since the report before: a new estimate is news, and what a loss set
    /// lasts until an interval without loss.
    EachReport,
    /// With each acknowledgement outside of recovery, to the letter of Fig. 3-7.
    EachAck,
    /// Never: losses alone set it, as in plain SCTP.
    Never,
}
spelled!(SsthreshRule: SsthreshRule::EachReport = "each_report", SsthreshRule::EachAck = "each_ack",
    SsthreshRule::Never = "never");

/// The least ssthresh after congestion. §3.5.1 and Fig. 2-1 say two MTU, Fig. 3-7 says one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionFloor {
    /// As the profile has it ("RSCTP processes standard congestion control of SCTP"), so that RSCTP and SCTP under one
    /// profile differ in the verdict alone.
    Profile,
    /// One unit.
    One,
    /// Two units.
    Two,
}
spelled!(CongestionFloor: CongestionFloor::Profile = "profile", CongestionFloor::One = "one",
    CongestionFloor::Two = "two");

/// The numbers and choices of [`Rsctp`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RsctpParameters {
    /// Beta of `cwnd - beta sqrt(cwnd)`, above 0 and at most 1; 0.2 in the paper.
    pub beta: f64,
    /// The unit of that formula.
    pub unit: DecreaseUnit,
    /// When the estimate sets ssthresh.
    pub ssthresh: SsthreshRule,
    /// The least ssthresh after congestion.
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

/// RSCTP over the growth of `Base`.
///
/// - congestion, or no estimate: the decrease of `Base`;
/// - wireless: `cwnd - beta sqrt(cwnd)`, at a timeout as well, and never below one unit; ssthresh stays.
#[derive(Clone, Debug)]
pub struct Rsctp<Base> {
    base: Base,
    parameters: RsctpParameters,
    /// cwnd of a path on which nothing was sent: a report never sets less.
    initial_cwnd: f64,
    /// Bytes per second.
    bandwidth: Option<f64>,
    srtt: Option<Nanos>,
    lost_since_report: bool,
}

impl<Base: Adjustable> Rsctp<Base> {
    /// A controller at the start of its path.
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

    /// What a loss now is put down to; `None` while a measurement is missing.
    pub fn judge(&self) -> Option<Verdict> {
        Verdict::of(self.base.cwnd_exact(), self.srtt, self.bandwidth)
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
        // A window below one segment would still let one go; and none grows by a loss.
        self.base.set_cwnd(left.max(segment.min(cwnd)));
    }

    fn decrease_for_congestion(&mut self, now: Nanos, cause: LossCause, flightsize: u64) {
        let before = self.base.cwnd_exact();
        let ssthresh = self.base.ssthresh();
        self.base.on_loss(now, cause, flightsize);
        let unit = self.base.unit() as f64;
        if cause == LossCause::Timeout && before <= unit && self.base.ssthresh() == ssthresh {
            return; // the base lets a repeated timeout pass
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

impl<Base: Adjustable> CongestionControl for Rsctp<Base> {
    fn loss_verdict(&self) -> Option<Option<Verdict>> {
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

    /// A mark is a router's word: congestion, whatever the receiver's estimate says.
    fn on_ecn(&mut self, now: Nanos, flightsize: u64) {
        self.lost_since_report = true;
        let before = self.cwnd_exact();
        self.decrease_for_congestion(now, LossCause::FastRetransmit, flightsize);
        self.base.cap_cwnd(before);
    }

    fn on_loss(&mut self, now: Nanos, cause: LossCause, flightsize: u64) {
        self.lost_since_report = true;
        match self.judge() {
            Some(Verdict::Wireless) => self.decrease_for_wireless(),
            Some(Verdict::Congestion) | None => {
                self.decrease_for_congestion(now, cause, flightsize)
            }
        }
    }

    fn on_heartbeat_lost(&mut self, _: Nanos) {
        self.lost_since_report = true;
        // Fig. 3-7 has no branch for it under congestion.
        if self.judge() == Some(Verdict::Wireless) {
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
