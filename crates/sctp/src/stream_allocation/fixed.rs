//! Allocations with a constant number of streams.

use super::StreamAllocation;

/// Uses a given number of streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixedStreams {
    streams: u16,
}

impl FixedStreams {
    /// Uses `streams` streams, at least 1.
    pub fn new(streams: u16) -> Self {
        Self {
            streams: streams.max(1),
        }
    }
}

impl StreamAllocation for FixedStreams {
    fn wanted(&self) -> u16 {
        self.streams
    }

    fn cap(&mut self, most: u16) {
        self.streams = most.max(1);
    }

    fn name(&self) -> &'static str {
        "fixed"
    }
}

/// Uses all negotiated streams.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Negotiated {
    streams: u16,
}

impl StreamAllocation for Negotiated {
    fn wanted(&self) -> u16 {
        self.streams.max(1)
    }

    fn negotiated(&mut self, streams: u16) {
        self.streams = streams;
    }

    fn cap(&mut self, most: u16) {
        self.streams = most;
    }

    fn name(&self) -> &'static str {
        "negotiated"
    }
}
