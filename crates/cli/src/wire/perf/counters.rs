//! Counters that the tasks of an association share with the report.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of the tasks of an association.
#[derive(Debug)]
pub struct Counted {
    /// Data that came.
    pub bytes: AtomicU64,
    pub messages: AtomicU64,
    /// When the last of it came, nanoseconds since the beginning.
    pub last: AtomicU64,
    /// Data that was sent in all, once nothing more will be.
    pub fed_bytes: AtomicU64,
    pub fed_messages: AtomicU64,
    /// When everything had arrived, nanoseconds since the beginning.
    pub done: AtomicU64,
}

/// A number that is not known yet.
pub const UNKNOWN: u64 = u64::MAX;

impl Counted {
    pub fn new() -> Self {
        Self {
            bytes: AtomicU64::new(0),
            messages: AtomicU64::new(0),
            last: AtomicU64::new(0),
            fed_bytes: AtomicU64::new(UNKNOWN),
            fed_messages: AtomicU64::new(UNKNOWN),
            done: AtomicU64::new(UNKNOWN),
        }
    }

    pub fn done(&self) -> Option<u64> {
        Some(self.done.load(Ordering::Relaxed)).filter(|&done| done != UNKNOWN)
    }
}
