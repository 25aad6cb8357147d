//! Use of the shared receive buffer by each stream, for the trace.

use anabranch_transport::{Nanos, Probe, Trace};

use crate::stream_table::StreamTable;

#[derive(Debug, Default)]
struct InStream {
    bytes: u64,
    /// Whether the stream is listed in `changed`.
    changed: bool,
}

/// Number of buffered bytes by stream, as the receiver window counts them. The counters exist only
/// while a probe records them. Changes are recorded at the next call that has the time as a
/// parameter.
#[derive(Debug, Default)]
pub(super) struct PerStreamUsage(Option<Box<Counts>>);

#[derive(Debug, Default)]
struct Counts {
    streams: StreamTable<InStream>,
    /// Streams whose number of bytes has changed since the last record.
    changed: Vec<u16>,
    /// Total that was recorded last, in bytes.
    recorded: u64,
}

impl PerStreamUsage {
    /// Starts counting if `trace` records [`Probe::ReceiveBufferUsed`], and stops if it does not.
    /// Data that is already buffered is not counted.
    #[inline]
    pub fn follow(&mut self, trace: &Trace) {
        let wanted = trace.wants(Probe::ReceiveBufferUsed);
        if wanted == self.is_off() {
            self.0 = wanted.then(Box::default);
        }
    }

    /// Whether the probe was disabled at the last check.
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
        // Calls without data, which only update the window, have no effect here.
        if let Some(counts) = &mut self.0
            && bytes > 0
        {
            let held = counts.change(stream);
            held.bytes = held.bytes.saturating_sub(bytes);
        }
    }

    /// Records changes: index 0 is the total `sum`, and index `n + 1` is stream `n`.
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
            // There is no probe index for stream 65535.
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
