//! Executor and progress interface for the runs of a question.

use anabranch_engine::runner::Runner;

/// Parameters for making runs.
#[derive(Clone, Copy)]
pub struct Executor<'a> {
    /// Number of threads. Results do not depend on it.
    pub jobs: usize,
    /// Runner that executes a run.
    pub runner: &'a dyn Runner,
    /// Receiver of progress reports.
    pub progress: &'a dyn AdviceProgress,
}

/// Receives progress reports in simulated seconds.
pub trait AdviceProgress: Sync {
    /// A new stage begins.
    fn stage(&self, what: &str);
    /// Estimated number of further events after `done` events. Reported once before the long part
    /// begins.
    fn outlook(&self, ahead: u64, done: u64);
    /// Estimated remaining simulated time, which becomes more precise.
    fn expect(&self, seconds: f64);
    /// A run of this simulated time has finished.
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
