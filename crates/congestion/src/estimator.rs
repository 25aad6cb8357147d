//! Path estimators, which measure a path from acknowledgements or from the receiver's reports,
//! without influence on sending.

use std::fmt::Debug;

use anabranch_transport::Nanos;

use crate::{AckSample, Feedback};

/// Estimator of the rate of a path. It is part of the sender, and receives the same notifications
/// as the controller.
pub trait PathEstimator: Debug + Send {
    /// Processes an acknowledgement. Times of successive calls never decrease.
    fn on_ack(&mut self, ack: &AckSample);

    /// Processes a report of the receiver.
    fn on_feedback(&mut self, now: Nanos, feedback: &Feedback) {
        let _ = (now, feedback);
    }

    /// Advances the time to `now`, because a loss is about to be classified. No data was
    /// acknowledged since the last call.
    fn advance(&mut self, now: Nanos) {
        let _ = now;
    }

    /// Estimated rate, in bytes per second as counted by [`AckSample::bytes_acked`]; `None` before
    /// the first sample.
    fn rate(&self) -> Option<f64>;

    /// Name in specs and reports.
    fn name(&self) -> &'static str;
}
