//! Trace samples of congestion windows and timeouts.

use anabranch_transport::{Nanos, Probe, Trace};

use super::{FIRST, Sender};

impl Sender {
    /// Segment number in traces: that of the segment that begins at `offset`, counted from 0.
    pub(super) fn number(&self, offset: u64) -> f64 {
        (offset.saturating_sub(FIRST) / self.flow.mss) as f64
    }

    #[inline]
    pub(super) fn trace_windows(&mut self, now: Nanos, trace: &mut Trace) {
        // Usually no probe is enabled, so the controller need not be queried.
        if trace.wants(Probe::Cwnd) || trace.wants(Probe::Ssthresh) {
            self.trace_changes(now, trace);
        }
    }

    fn trace_changes(&mut self, now: Nanos, trace: &mut Trace) {
        let (cwnd, ssthresh) = (self.flow.control.cwnd_exact(), self.flow.control.ssthresh());
        if cwnd != self.traced.0 {
            trace.record(now, Probe::Cwnd, 0, cwnd);
        }
        if ssthresh != self.traced.1 && ssthresh != u64::MAX {
            trace.record(now, Probe::Ssthresh, 0, ssthresh as f64);
        }
        self.traced = (cwnd, ssthresh);
    }

    pub(super) fn trace_rto(&self, now: Nanos, trace: &mut Trace) {
        trace.record(
            now,
            Probe::Rto,
            0,
            anabranch_transport::time::seconds(self.rto.rto()),
        );
        if let Some(srtt) = self.rto.srtt() {
            trace.record(
                now,
                Probe::Srtt,
                0,
                anabranch_transport::time::seconds(srtt),
            );
        }
    }
}
