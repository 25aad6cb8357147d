//! Counters that the tasks of an association update and the report reads.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of the tasks of an association.
#[derive(Debug)]
pub struct SharedCounters {
    /// Number of received bytes and messages.
    pub bytes: AtomicU64,
    pub messages: AtomicU64,
    /// Time at which the last data arrived, nanoseconds since the start.
    pub last: AtomicU64,
    /// Number of bytes and messages that were sent, set after the last message.
    pub fed_bytes: AtomicU64,
    pub fed_messages: AtomicU64,
    /// Time at which all data had arrived, nanoseconds since the start.
    pub done: AtomicU64,
}

/// Value of a counter that is not known yet.
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
