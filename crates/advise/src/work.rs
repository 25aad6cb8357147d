//! Who does the work of an answer, and who hears how far it is.

use anabranch_engine::runner::Runner;

/// How the runs are made.
#[derive(Clone, Copy)]
pub struct Work<'a> {
    /// Threads. No answer depends on their number.
    pub jobs: usize,
    /// What makes a run.
    pub runner: &'a dyn Runner,
    /// Hears how far the work is.
    pub watch: &'a dyn Watch,
}

/// Hears how far the work is, counted in simulated seconds.
pub trait Watch: Sync {
    /// Something new begins.
    fn stage(&self, what: &str);
    /// So many events may still come, after so many: told once, before the long part begins.
    fn outlook(&self, ahead: u64, done: u64);
    /// So much is expected still to come; a guess that gets better.
    fn expect(&self, seconds: f64);
    /// So much was done, by one run.
    fn did(&self, seconds: f64);
}

/// Nobody watches.
pub struct Unwatched;

impl Watch for Unwatched {
    fn stage(&self, _: &str) {}
    fn outlook(&self, _: u64, _: u64) {}
    fn expect(&self, _: f64) {}
    fn did(&self, _: f64) {}
}
