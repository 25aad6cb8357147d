//! Fast path for acknowledgements, and a cheap check whether the next segment must wait for the
//! window.

use anabranch_congestion::AckSample;
use anabranch_transport::{Nanos, Probe, Trace};

use super::recovery::NextSegment;
use super::spurious::Frto;
use super::{Plan, Sender};
use crate::stats::Stats;

impl Sender {
    /// Fast path of [`Sender::handle_ack`] for an acknowledgement of offset `to`, between `SND.UNA`
    /// and the highest offset sent. The fast path applies if the segment carries neither data nor
    /// options and acknowledges new data, while no recovery and no check of a spurious reduction is
    /// in progress. Returns whether the fast path was possible.
    #[inline(always)]
    pub(crate) fn fast_path_ack(
        &mut self,
        now: Nanos,
        to: u64,
        stats: &mut Stats,
        trace: &mut Trace,
    ) -> bool {
        let advanced = to - self.flow.una;
        if advanced == 0
            || self.closing
            || self.timestamps
            || self.flow.spurious.frto != Frto::Off
            || trace.wants(Probe::Pipe)
            || !self.recovery.pass(&mut self.flow, to)
        {
            return false;
        }
        let flightsize_before = self.flow.flightsize();
        self.advance(now, to, stats, trace);
        let rtt = self.fast_path_rtt(now, trace);
        let limited = self.growth_needs_full_cwnd()
            && flightsize_before + self.flow.mss <= self.flow.control.cwnd();
        let flightsize = self.flow.flightsize();
        let latest = if self.flow.control.wants_latest_rtt() {
            self.sent_times.on_ack(to, &[])
        } else {
            self.sent_times.clear();
            None
        };
        self.flow.control.on_ack(&AckSample {
            now,
            bytes_acked: advanced,
            segments_acked: advanced.div_ceil(self.flow.mss) as u32,
            cumulative_advanced: !limited,
            marked: false,
            bytes_marked: 0,
            flightsize_before,
            flightsize_after: flightsize,
            in_recovery: false,
            rtt,
            latest_rtt: latest.map(|sent_at| now.saturating_sub(sent_at)),
            srtt: self.rto.srtt(),
            delivery: self.flow.delivery.on_ack(now, advanced, flightsize),
            rate: None,
        });
        self.retransmit_at = (flightsize > 0).then(|| now + self.rto.rto());
        self.trace_windows(now, trace);
        true
    }

    /// Round-trip time that an acknowledgement without timestamp measures, if any.
    #[inline(always)]
    fn fast_path_rtt(&mut self, now: Nanos, trace: &mut Trace) -> Option<Nanos> {
        let (behind, sent_at) = self.timing?;
        if self.flow.una < behind {
            return None;
        }
        self.timing = None;
        self.rto.sample(now, sent_at);
        self.trace_rto(now, trace);
        Some(now.saturating_sub(sent_at))
    }

    /// Whether the sender must wait for an acknowledgement, because the next segment is full,
    /// contains new data, and does not fit in the congestion window. This check is cheaper than
    /// [`Sender::plan`]; `false` does not mean that a segment can be sent.
    #[inline(always)]
    pub(crate) fn waits_for_room(&self) -> bool {
        let flow = &self.flow;
        let full = flow.nxt + flow.mss;
        if self.probe_owed
            || self.probing
            || self.persist_at.is_some()
            || flow.nxt < flow.max
            || full > flow.window_edge
            || full > self.buffer.end()
            || flow.spurious.frto != Frto::Off
        {
            return false;
        }
        match self.recovery.next(flow) {
            Some(NextSegment::Continue { room, .. }) => room < flow.mss,
            Some(NextSegment::Retransmit(_)) => false,
            None => true,
        }
    }

    /// Data of a planned segment as one slice; `None` if it is not contiguous in the buffer.
    #[inline(always)]
    pub(crate) fn contiguous_data(&self, plan: &Plan) -> Option<&[u8]> {
        self.buffer.slice(plan.start, plan.len)
    }
}
