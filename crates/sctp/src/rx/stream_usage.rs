//! Usage of the shared receive buffer by stream.

use anabranch_transport::{Nanos, Probe, Trace};

use crate::stream_table::StreamTable;

#[derive(Debug, Default)]
struct InStream {
    bytes: u64,
    /// The stream is listed in `changed`.
    changed: bool,
}

/// Buffered bytes by stream, as the receive window counts them. A change is recorded when the time
/// is next known. It exists only while tracing wants it, because no decision depends on it.
#[derive(Debug, Default)]
pub(super) struct PerStreamUsage(Option<Box<Counts>>);

#[derive(Debug, Default)]
struct Counts {
    streams: StreamTable<InStream>,
    /// Streams whose bytes changed since they were last recorded.
    changed: Vec<u16>,
    /// The last recorded sum.
    recorded: u64,
}

impl PerStreamUsage {
    /// Starts counting if `trace` wants it. Data buffered before is unknown.
    #[inline]
    pub fn follow(&mut self, trace: &Trace) {
        let wanted = trace.wants(Probe::ReceiveBufferUsed);
        if wanted == self.is_off() {
            self.0 = wanted.then(Box::default);
        }
    }

    /// Whether tracing was disabled at the last check.
    #[inline]
    pub fn is_off(&self) -> bool {
        self.0.is_none()
    }

    #[inline]
    pub fn take(&mut self, stream: u16, bytes: u64) {
        if let Some(counts) = &mut self.0 {
            counts.change(stream).bytes += bytes;
        }
    }

    #[inline]
    pub fn free(&mut self, stream: u16, bytes: u64) {
        // Earlier window updates do not matter here.
        if let Some(counts) = &mut self.0
            && bytes > 0
        {
            let held = counts.change(stream);
            held.bytes = held.bytes.saturating_sub(bytes);
        }
    }

    /// Records changes: index 0 is the sum, `sum`, and index `n + 1` stream `n`.
    #[inline]
    pub fn record(&mut self, now: Nanos, sum: u64, trace: &mut Trace) {
        if let Some(counts) = &mut self.0 {
            counts.record_changed(now, sum, trace);
        }
    }
}

impl Counts {
    fn change(&mut self, stream: u16) -> &mut InStream {
        let held = self.streams.entry(stream);
        if !std::mem::replace(&mut held.changed, true) {
            self.changed.push(stream);
        }
        held
    }

    fn record_changed(&mut self, now: Nanos, sum: u64, trace: &mut Trace) {
        for stream in self.changed.drain(..) {
            let held = self.streams.entry(stream);
            held.changed = false;
            // There is no index for stream 65535.
            if let Some(index) = stream.checked_add(1) {
                trace.record(now, Probe::ReceiveBufferUsed, index, held.bytes as f64);
            }
        }
        if self.recorded != sum {
            self.recorded = sum;
            trace.record(now, Probe::ReceiveBufferUsed, 0, sum as f64);
        }
    }
}
