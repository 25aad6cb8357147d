//! Estimator for the receiver's measurements: the estimate of RSCTP with the interface of the
//! sender's estimators.

use anabranch_transport::Nanos;

use crate::estimator::PathEstimator;
use crate::{AckSample, Feedback};

/// Reports of the receiver about one path: the last bandwidth, and the loss rate, which may be
/// smoothed.
#[derive(Clone, Debug)]
pub struct ReceiverEstimate {
    loss_gain: f64,
    bandwidth: Option<f64>,
    loss_rate: Option<f64>,
}

impl ReceiverEstimate {
    /// Creates an estimator without reports. `loss_gain`, above 0 and at most 1, is the weight of a
    /// new loss rate in the estimate. With 1 each report is used without smoothing, as in the
    /// paper.
    pub fn new(loss_gain: f64) -> Self {
        Self {
            loss_gain,
            bandwidth: None,
            loss_rate: None,
        }
    }

    /// Fraction of lost chunks, 0 to 1; `None` before the first report that contains it.
    pub fn loss_rate(&self) -> Option<f64> {
        self.loss_rate
    }

    /// Forgets the loss rate, because losses before the path became active do not describe its
    /// current state.
    pub fn forget_losses(&mut self) {
        self.loss_rate = None;
    }
}

impl PathEstimator for ReceiverEstimate {
    fn on_ack(&mut self, _: &AckSample) {}

    fn on_feedback(&mut self, _: Nanos, feedback: &Feedback) {
        self.bandwidth = feedback.available_bandwidth.or(self.bandwidth);
        if let Some(reported) = feedback.loss_rate {
            let known = self.loss_rate.unwrap_or(reported);
            self.loss_rate = Some(known + self.loss_gain * (reported - known));
        }
    }

    fn rate(&self) -> Option<f64> {
        self.bandwidth
    }

    fn name(&self) -> &'static str {
        "receiver"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(loss_rate: Option<f64>, bandwidth: Option<f64>) -> Feedback {
        Feedback {
            available_bandwidth: bandwidth,
            loss_rate,
            srtt: None,
            carries_data: true,
            peer_window: 0,
        }
    }

    #[test]
    fn the_last_bandwidth_and_the_losses_as_asked() {
        for (gain, expected) in [(1.0, 0.0), (0.25, 0.075)] {
            let mut estimate = ReceiverEstimate::new(gain);
            assert_eq!((estimate.rate(), estimate.loss_rate()), (None, None));
            estimate.on_feedback(0, &reported(Some(0.1), Some(5.0)));
            assert_eq!(estimate.loss_rate(), Some(0.1), "the first as it is");
            estimate.on_feedback(1, &reported(None, None));
            estimate.on_feedback(2, &reported(Some(0.0), Some(7.0)));
            assert_eq!(estimate.rate(), Some(7.0));
            let loss = estimate.loss_rate().expect("told twice");
            assert!((loss - expected).abs() < 1e-12, "{loss}");
            estimate.forget_losses();
            assert_eq!((estimate.rate(), estimate.loss_rate()), (Some(7.0), None));
        }
    }
}
