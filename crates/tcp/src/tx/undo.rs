//! F-RTO (RFC 5682), and the undo of spurious window reductions (RFC 4015).

use std::ops::Range;

use anabranch_congestion::LossCause;
use anabranch_transport::Trace;

use super::recovery::{Acknowledgement, NextSegment};
use super::send_sequence::Flow;
use super::spurious::Frto;
use super::{Ack, Sender};
use crate::stats::Stats;

/// Evidence that a window reduction was spurious.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Evidence {
    /// The original transmission was acknowledged (RFC 4015, `SPUR_TO`), so the data sent after it
    /// is still in flight.
    Original,
    /// The peer reported all retransmissions as duplicates, after they were acknowledged
    /// (`LATE_SPUR_TO`).
    Duplicates,
}

impl Sender {
    /// Starts F-RTO after a retransmission timeout (RFC 5682 §2.1, step 1), or restarts it if no
    /// acknowledgement has arrived since the last timeout. F-RTO does not start during fast
    /// recovery or during the recovery from another timeout, because acknowledgements of
    /// retransmissions in that recovery say nothing about this timeout.
    pub(super) fn begin_forward(&mut self) {
        let spurious = &mut self.flow.spurious;
        let alone = self.flow.una >= spurious.recover && !self.recovery.recovering();
        spurious.frto = match spurious.forward && alone {
            true => Frto::Asked,
            false => Frto::Off,
        };
        if !alone {
            spurious.recover = self.flow.max;
        }
    }

    /// Undoes the last reduction if an acknowledgement shows that it was spurious. Called after
    /// loss recovery has processed the acknowledgement. `marked` says whether the acknowledgement
    /// reports marks.
    pub(super) fn judge_reduction(
        &mut self,
        ack: &Ack<'_>,
        marked: bool,
        seen: &Acknowledgement<'_>,
        twice: Option<Range<u64>>,
        stats: &mut Stats,
        trace: &mut Trace,
    ) {
        let una = self.flow.una;
        let spurious = &mut self.flow.spurious;
        let twice = twice.is_some_and(|range| spurious.all_came_twice(&range));
        let original = seen.advanced > 0 && spurious.original_came(una, ack.echoed);
        let forward = self.step_forward(seen);
        let evidence = match (original || forward, twice) {
            (true, _) => Evidence::Original,
            (false, true) => Evidence::Duplicates,
            (false, false) => return,
        };
        self.undo_reduction(evidence, marked, seen, stats, trace);
    }

    /// Processes an acknowledgement in steps 2 and 3 of F-RTO. Returns whether the timeout was
    /// spurious. An acknowledgement that is neither new nor a duplicate is ignored.
    fn step_forward(&mut self, seen: &Acknowledgement<'_>) -> bool {
        let flow = &mut self.flow;
        if seen.advanced == 0 && !seen.duplicate {
            return false;
        }
        match flow.spurious.frto {
            Frto::Off => false,
            Frto::Asked => {
                flow.spurious.recover = flow.max;
                flow.spurious.frto = Frto::Off;
                let all_of_first = flow.spurious.first_again_end() <= flow.una;
                let new = seen.advanced > 0 && all_of_first && flow.una < flow.max;
                if new && flow.can_send_new() {
                    // Step 2 b: the acknowledgement covers all retransmitted data, but not all
                    // outstanding data.
                    flow.nxt = flow.max;
                    flow.spurious.frto = Frto::Probing(2 * flow.mss);
                }
                false
            }
            Frto::Probing(_) => {
                flow.spurious.frto = Frto::Off;
                if seen.advanced == 0 && self.recovery.goes_back() {
                    flow.nxt = flow.una;
                }
                seen.advanced > 0
            }
        }
    }

    /// Data that F-RTO allows to be sent next; `None` if loss recovery decides.
    pub(super) fn next_forward(&self) -> Option<NextSegment> {
        match self.flow.spurious.frto {
            Frto::Probing(room) => Some(NextSegment::Continue {
                room,
                skip_reported: false,
            }),
            Frto::Off | Frto::Asked => None,
        }
    }

    /// Restores the window after a spurious reduction (RFC 4015 §3.1, step 9). After a timeout, the
    /// window is limited to the data in flight plus the data just acknowledged, so that no burst
    /// follows. The window is not restored if the acknowledgement reports a mark. The RTO stays
    /// backed off until a round-trip time is measured, because it was too short.
    fn undo_reduction(
        &mut self,
        evidence: Evidence,
        marked: bool,
        seen: &Acknowledgement<'_>,
        stats: &mut Stats,
        trace: &mut Trace,
    ) {
        let now = seen.moment.now;
        let flow: &mut Flow = &mut self.flow;
        let undo = flow.spurious.undo.take();
        let timed_out = undo
            .as_ref()
            .is_none_or(|it| it.cause == LossCause::Timeout);
        if evidence == Evidence::Original {
            flow.spurious.frto = Frto::Off;
            if timed_out {
                // Step 8. From now on duplicates indicate a loss, because retransmissions no longer
                // cause them. The next fast retransmit and the next F-RTO should therefore not wait
                // for the data outstanding at the timeout (RFC 4015 §4, RFC 5682 §2.2).
                flow.nxt = flow.max;
                flow.spurious.recover = flow.una;
                self.recovery.on_spurious_timeout(now, flow.una);
            }
        }
        let Some(undo) = undo else {
            return;
        };
        stats.spurious_timeouts += u64::from(timed_out);
        if marked && flow.ecn.answers() {
            return;
        }
        let cwnd = match undo.cause {
            LossCause::FastRetransmit => undo.cwnd,
            LossCause::Timeout => {
                let initial = self.profile.initial_window.segments(flow.mss) * flow.mss as f64;
                let acknowledged = (seen.advanced as f64).min(initial);
                undo.cwnd.min(flow.flightsize() as f64 + acknowledged)
            }
        };
        flow.control.on_undo(cwnd, undo.ssthresh);
        flow.end_reduction();
        stats.reductions_undone += 1;
        self.trace_windows(now, trace);
    }
}
