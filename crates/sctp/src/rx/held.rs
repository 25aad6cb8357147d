//! What each stream holds of the one receive buffer that all share.

use anabranch_transport::{Nanos, Probe, Trace};

use crate::stream_table::StreamTable;

#[derive(Debug, Default)]
struct InStream {
    bytes: u64,
    /// It is among the changed.
    changed: bool,
}

/// Bytes held by stream, as the receive window counts them. A change is recorded when the time is next known.
#[derive(Debug, Default)]
pub(super) struct Held {
    streams: StreamTable<InStream>,
    /// Streams whose bytes changed since they were last recorded.
    changed: Vec<u16>,
    /// The sum last recorded.
    recorded: u64,
}

impl Held {
    pub fn take(&mut self, stream: u16, bytes: u64) {
        self.change(stream).bytes += bytes;
    }

    pub fn free(&mut self, stream: u16, bytes: u64) {
        let held = self.change(stream);
        debug_assert!(
            bytes <= held.bytes,
            "stream {stream} freed more than it held"
        );
        held.bytes = held.bytes.saturating_sub(bytes);
    }

    fn change(&mut self, stream: u16) -> &mut InStream {
        let held = self.streams.entry(stream);
        if !std::mem::replace(&mut held.changed, true) {
            self.changed.push(stream);
        }
        held
    }

    /// Records what changed: index 0 is the sum, `sum`, and index `n + 1` stream `n`.
    pub fn record(&mut self, now: Nanos, sum: u64, trace: &mut Trace) {
        for stream in self.changed.drain(..) {
            let held = self.streams.entry(stream);
            held.changed = false;
            // There is no index for stream 65535.
            if let Some(index) = stream.checked_add(1) {
                trace.record(now, Probe::Buffered, index, held.bytes as f64);
            }
        }
        if self.recorded != sum {
            self.recorded = sum;
            trace.record(now, Probe::Buffered, 0, sum as f64);
        }
    }
}
