//! What is learnt of a path from its acknowledgements or its receiver's reports, without changing how it is used.

use std::fmt::Debug;

use anabranch_transport::Nanos;

use crate::{AckSample, Feedback};

/// Estimates the rate that a path carries. It lives at the sender and hears what a controller hears.
pub trait PathEstimator: Debug + Send {
    /// An acknowledgement arrived. Times never go back.
    fn on_ack(&mut self, ack: &AckSample);

    /// The receiver reported what it sees.
    fn on_feedback(&mut self, now: Nanos, feedback: &Feedback) {
        let _ = (now, feedback);
    }

    /// It is `now`, and nothing was acknowledged since the last call: a loss is about to be judged.
    fn advance(&mut self, now: Nanos) {
        let _ = now;
    }

    /// The estimate, bytes per second as [`AckSample::bytes_acked`] counts them; `None` before the first sample.
    fn rate(&self) -> Option<f64>;

    /// Name in specs and reports.
    fn name(&self) -> &'static str;
}
