//! Loss classification of the adaptive allocations, congestion or wireless, and their return to one
//! stream after a quiet period (H. Tsunoda, N. Kato, A. Jamalipour, Y. Nemoto, "Performance
//! Evaluation of SCTP with Adaptive Multistreaming over LEO Satellite Networks", 2007, Section
//! II-B, Figs. 3 and 11).

use anabranch_transport::time::SECOND;
use anabranch_transport::{Nanos, time};

use super::Loss;

/// The round-trip time that converts the rate estimate to a window. The paper compares cwnd with
/// `RE x weight` and names no time; its reference (Wang et al., ISCC 2002) compares cwnd with `RE x
/// RTTmin`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundTrip {
    /// The minimum.
    Least,
    /// The smoothed round-trip time.
    Smoothed,
    /// A fixed value: with one second, cwnd in bytes is compared with RE in bytes per second, as
    /// the formula reads without a time.
    Given(Nanos),
}

/// Definition of one loss. The paper says "when a sender notices packet losses".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossEvents {
    /// Each SACK that brings chunks to the threshold of missing reports, on each path; and each
    /// expiry of T3-rtx.
    PerSack,
    /// Each chunk that reaches the threshold; and each expiry of T3-rtx.
    PerChunk,
    /// Each reduction of a congestion window: one congestion event of the recovery.
    PerCut,
}

/// Parameters of the classification.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossClassifier {
    /// A loss is congestion if `cwnd > weight x RE x RTT`; this is the weight while one stream is
    /// in use: 1.4 (Fig. 3, after ISCC 2002).
    pub weight_single: f64,
    /// The weight while several are in use, larger to avoid oscillation: 1.6 (Fig. 3).
    pub weight_multiple: f64,
    /// The time that converts the rate to a window.
    pub round_trip: RoundTrip,
    /// Definition of one loss.
    pub loss_events: LossEvents,
    /// Interval of the check for retransmissions while several streams are in use. Without any
    /// since the last check, one stream is enough: 5 s (Section II-B). `None`: no check.
    pub quiet: Option<Nanos>,
}

impl Default for LossClassifier {
    /// The values of the paper if it specifies them; otherwise RTTmin and one loss per SACK.
    fn default() -> Self {
        Self {
            weight_single: 1.4,
            weight_multiple: 1.6,
            round_trip: RoundTrip::Least,
            loss_events: LossEvents::PerSack,
            quiet: Some(5 * SECOND),
        }
    }
}

impl LossClassifier {
    /// Whether the loss is classified as congestion rather than wireless, with `multiple` streams
    /// in use. Without an estimate it is congestion.
    pub(super) fn is_congestion(&self, loss: &Loss, multiple: bool) -> bool {
        let weight = if multiple {
            self.weight_multiple
        } else {
            self.weight_single
        };
        let round_trip = match self.round_trip {
            RoundTrip::Least => loss.rtt_min,
            RoundTrip::Smoothed => loss.srtt,
            RoundTrip::Given(time) => Some(time),
        };
        let carried = loss.rate.unwrap_or(0.0) * time::seconds(round_trip.unwrap_or(0));
        loss.cwnd as f64 - carried * weight > 0.0
    }
}

/// Periodic check for retransmissions while several streams are in use.
#[derive(Clone, Debug, Default)]
pub(super) struct QuietTimer {
    ask_at: Option<Nanos>,
    last_retransmission: Option<Nanos>,
}

impl QuietTimer {
    /// Starts or stops the check at `now`.
    pub fn watch(&mut self, now: Nanos, multiple: bool, period: Option<Nanos>) {
        self.ask_at = match (multiple, period) {
            (true, Some(period)) => self.ask_at.or(Some(now.saturating_add(period.max(1)))),
            _ => None,
        };
    }

    pub fn on_retransmission(&mut self, now: Nanos) {
        self.last_retransmission = Some(now);
    }

    pub fn deadline(&self) -> Option<Nanos> {
        self.ask_at
    }

    /// Whether the check was due and no data was retransmitted in the last `period`.
    pub fn is_quiet(&mut self, now: Nanos, period: Option<Nanos>) -> bool {
        let (Some(due), Some(period)) = (self.ask_at, period) else {
            return false;
        };
        if now < due {
            return false;
        }
        let period = period.max(1);
        self.ask_at = Some(now.saturating_add(period));
        self.last_retransmission
            .is_none_or(|last| last.saturating_add(period) <= now)
    }
}
