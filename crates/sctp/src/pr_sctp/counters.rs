//! Counters of abandoned messages by stream and policy (RFC 7496 §4.3, §4.4).

use super::AbandonPolicy;
use crate::stream_table::StreamTable;

/// Number of abandoned messages, by whether any part was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AbandonedCount {
    /// Messages of which no chunk was sent.
    pub unsent: u64,
    /// Messages of which at least one chunk was sent.
    pub sent: u64,
}

impl AbandonedCount {
    fn count(&mut self, sent: bool) {
        self.sent += u64::from(sent);
        self.unsent += u64::from(!sent);
    }
}

type ByPolicy = [AbandonedCount; AbandonPolicy::ALL.len()];

/// Counters of all abandoned messages.
#[derive(Debug, Default)]
pub(super) struct Counters {
    all: ByPolicy,
    /// Counters by stream, for messages to which a stream was assigned.
    by_stream: StreamTable<ByPolicy>,
}

impl Counters {
    pub fn count(&mut self, stream: Option<u16>, policy: AbandonPolicy, sent: bool) {
        self.all[policy as usize].count(sent);
        if let Some(stream) = stream {
            self.by_stream.entry(stream)[policy as usize].count(sent);
        }
    }

    pub fn of(&self, policy: AbandonPolicy) -> AbandonedCount {
        self.all[policy as usize]
    }

    pub fn on(&self, stream: u16, policy: AbandonPolicy) -> AbandonedCount {
        let counts = self.by_stream.get(stream);
        counts.map_or_else(AbandonedCount::default, |it| it[policy as usize])
    }
}
