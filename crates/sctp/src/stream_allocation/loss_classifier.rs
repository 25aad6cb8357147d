//! Classification of losses as congestion or wireless for the adaptive allocations, and detection
//! of a quiet period after which they return to one stream (H. Tsunoda, N. Kato, A. Jamalipour, Y.
//! Nemoto, "Performance Evaluation of SCTP with Adaptive Multistreaming over LEO Satellite
//! Networks", 2007, Section II-B, Figs. 3 and 11).

use anabranch_transport::time::SECOND;
use anabranch_transport::{Nanos, time};

use super::LossEvent;

/// Round-trip time by which the rate estimate is multiplied to obtain a window. The paper compares
/// cwnd with `RE x weight` without a time; the paper that it cites (Wang et al., ISCC 2002)
/// compares cwnd with `RE x RTTmin`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundTrip {
    /// The minimum round-trip time.
    Least,
    /// The smoothed round-trip time.
    Smoothed,
    /// A fixed value in nanoseconds. With one second, cwnd in bytes is compared with RE in bytes
    /// per second, which is the formula of the paper.
    Given(Nanos),
}

/// Which events count as one loss. The paper only says "when a sender notices packet losses".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossEvents {
    /// One loss for each SACK by which chunks of a path reach the threshold of missing reports, and
    /// one for each expiration of T3-rtx.
    PerSack,
    /// One loss for each chunk that reaches the threshold of missing reports, and one for each
    /// expiration of T3-rtx.
    PerChunk,
    /// One loss for each reduction of cwnd, that is, for each congestion event.
    PerCut,
}

/// Parameters of the loss classification.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossClassifier {
    /// Weight while one stream is in use: a loss is congestion if `cwnd > weight x RE x RTT`. 1.4
    /// in the paper (Fig. 3, after ISCC 2002).
    pub weight_single: f64,
    /// Weight while several streams are in use, larger to avoid oscillation. 1.6 in the paper (Fig.
    /// 3).
    pub weight_multiple: f64,
    /// Round-trip time by which the rate estimate is multiplied before it is compared with cwnd.
    pub round_trip: RoundTrip,
    /// Which events count as one loss.
    pub loss_events: LossEvents,
    /// Interval in nanoseconds at which the number of retransmissions is checked while several
    /// streams are in use. If no chunk was retransmitted since the last check, one stream is used.
    /// The paper checks every 5 s (Section II-B). `None`: no check.
    pub quiet: Option<Nanos>,
}

impl Default for LossClassifier {
    /// Values of the paper. It does not specify the round-trip time and the definition of a loss,
    /// for which the default is RTTmin and one loss per SACK.
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
    /// Whether the loss is classified as congestion, not wireless; `multiple`: several streams are
    /// in use. Without a rate estimate every loss is congestion.
    pub(super) fn is_congestion(&self, loss: &LossEvent, multiple: bool) -> bool {
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

/// Timer of the periodic check for retransmissions, while several streams are in use.
#[derive(Clone, Debug, Default)]
pub(super) struct QuietTimer {
    ask_at: Option<Nanos>,
    last_retransmission: Option<Nanos>,
}

impl QuietTimer {
    /// Starts or stops the periodic check at `now`.
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

    /// Whether the check was due and no chunk was retransmitted in the last `period`.
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
