//! Path estimators: measure a path from its acknowledgements or its receiver's reports, without an
//! influence on sending.

use std::fmt::Debug;

use anabranch_transport::Nanos;

use crate::{AckSample, Feedback};

/// Estimates the rate of a path. Runs at the sender and receives the same notifications as the
/// controller.
pub trait PathEstimator: Debug + Send {
    /// An acknowledgement arrived. Times never decrease.
    fn on_ack(&mut self, ack: &AckSample);

    /// The receiver reported its measurements.
    fn on_feedback(&mut self, now: Nanos, feedback: &Feedback) {
        let _ = (now, feedback);
    }

    /// Advances the time to `now`. No data was acknowledged since the last call, and a loss is
    /// about to be classified.
    fn advance(&mut self, now: Nanos) {
        let _ = now;
    }

    /// The estimate, bytes per second in the unit of [`AckSample::bytes_acked`]; `None` before the
    /// first sample.
    fn rate(&self) -> Option<f64>;

    /// Name in specs and reports.
    fn name(&self) -> &'static str;
}
