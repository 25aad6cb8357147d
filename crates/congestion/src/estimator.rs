//! What is learnt of a path from its acknowledgements, without changing how it is used.

use std::fmt::Debug;

use anabranch_transport::Nanos;

use crate::AckSample;

/// Estimates the rate that a path carries, at the sender. It hears what a controller hears.
pub trait PathEstimator: Debug + Send {
    /// An acknowledgement arrived. Times never go back.
    fn on_ack(&mut self, ack: &AckSample);

    /// It is `now`, and nothing was acknowledged since the last call: a loss is about to be judged.
    fn advance(&mut self, now: Nanos) {
        let _ = now;
    }

    /// The estimate, bytes per second as [`AckSample::bytes_acked`] counts them; `None` before the first sample.
    fn rate(&self) -> Option<f64>;

    /// Name in specs and reports.
    fn name(&self) -> &'static str;
}
