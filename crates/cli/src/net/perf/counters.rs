//! Counters that the tasks of an association share with the report.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of the tasks of an association.
#[derive(Debug)]
pub struct SharedCounters {
    /// Received data.
    pub bytes: AtomicU64,
    pub messages: AtomicU64,
    /// Arrival of the last of it, nanoseconds since the start.
    pub last: AtomicU64,
    /// Total of sent data, known after the last message.
    pub fed_bytes: AtomicU64,
    pub fed_messages: AtomicU64,
    /// Time at which everything had arrived, nanoseconds since the start.
    pub done: AtomicU64,
}

/// Stands for a number that is not known yet.
pub const UNKNOWN: u64 = u64::MAX;

impl SharedCounters {
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
