//! Execution of the runs of a question, and reports of its progress.

use anabranch_engine::runner::Runner;

/// The runner, the number of threads, and the receiver of progress reports.
#[derive(Clone, Copy)]
pub struct TrialExecutor<'a> {
    /// Number of threads. Results do not depend on it.
    pub jobs: usize,
    /// Runner that executes a run.
    pub runner: &'a dyn Runner,
    /// Receiver of progress reports.
    pub progress: &'a dyn AdviceProgress,
}

/// Receiver of progress reports.
pub trait AdviceProgress: Sync {
    /// A new stage has started.
    fn stage(&self, what: &str);
    /// The estimated number of events that are still to be simulated, after `done` events. Reported
    /// once, before the longest stage.
    fn outlook(&self, ahead: u64, done: u64);
    /// The estimated remaining simulated time, in seconds. The estimate becomes more precise with
    /// each call.
    fn expect(&self, seconds: f64);
    /// A run has finished, which had this simulated time in seconds.
    fn did(&self, seconds: f64);
}

/// Progress receiver that ignores all reports.
pub struct NoProgress;

impl AdviceProgress for NoProgress {
    fn stage(&self, _: &str) {}
    fn outlook(&self, _: u64, _: u64) {}
    fn expect(&self, _: f64) {}
    fn did(&self, _: f64) {}
}
