//! SACK-based loss recovery (RFC 6675).

use std::ops::Range;

use anabranch_congestion::LossCause;
use anabranch_transport::Nanos;

use super::{Acknowledgement, Flow, Moment, NextSegment, Outcome, Recovery, note_blocks};

#[derive(Debug, Default)]
pub(super) struct Rfc6675 {
    /// `RecoveryPoint` during recovery.
    recovery_point: Option<u64>,
    /// After a timeout, no recovery starts below this offset (§5.1).
    not_before: u64,
    /// The retransmission that starts recovery (step 4.3) is pending.
    owed: bool,
    /// Bytes sent by limited transmit since the cumulative point last advanced.
    limited: u64,
    /// `RescueRxt`: offset that the cumulative point must pass before another rescue retransmission
    /// is allowed.
    rescue: Option<u64>,
}

impl Rfc6675 {
    /// Starts recovery (§5 step 4).
    fn enter(&mut self, flow: &mut Flow, ack: &Acknowledgement<'_>) {
        self.recovery_point = Some(flow.max);
        self.owed = true;
        self.rescue = None;
        flow.board.begin_recovery();
        flow.begin_reduction(flow.board.pipe(flow.max));
        flow.cut(ack.moment.now, LossCause::FastRetransmit, self.limited);
    }

    /// `NextSeg()` of §4; called while the pipe has space for a segment.
    fn next_seg(&self, flow: &Flow) -> Option<NextSegment> {
        if let Some(lost) = flow.board.lost_hole() {
            return Some(NextSegment::Retransmit(lost));
        }
        if flow.can_send_new() {
            return Some(NextSegment::Continue {
                room: u64::MAX,
                skip_reported: true,
            });
        }
        if let Some(hole) = flow.board.hole_from(flow.board.retransmitted_to()) {
            return Some(NextSegment::Retransmit(hole));
        }
        self.rescue_range(flow).map(NextSegment::Retransmit)
    }

    /// Rule 4 of `NextSeg()`: the last segment that is neither reported nor retransmitted, once per
    /// recovery.
    fn rescue_range(&self, flow: &Flow) -> Option<Range<u64>> {
        if self.rescue.is_some_and(|rescue| flow.una <= rescue) {
            return None;
        }
        let last = flow.board.last_hole(flow.max);
        let start = last.start.max(last.end.saturating_sub(flow.mss));
        (start < last.end && last.end > flow.board.retransmitted_to()).then_some(start..last.end)
    }
}

impl Recovery for Rfc6675 {
    fn on_ack(&mut self, flow: &mut Flow, ack: &Acknowledgement<'_>) -> Outcome {
        let reported = flow.board.advance(flow.una);
        let newly_sacked = note_blocks(flow, ack.blocks);
        let delivered = (ack.advanced + newly_sacked).saturating_sub(reported);
        // An acknowledgement that reports new SACK data is a duplicate, even if it carries data or
        // changes the window (§2).
        let duplicate = ack.advanced == 0 && newly_sacked > 0;
        let mut outcome = Outcome {
            sample: true,
            restart_timer: true,
            duplicate,
            newly_sacked,
            delivered,
            ..Outcome::default()
        };
        if ack.advanced > 0 {
            flow.duplicates = 0;
            self.limited = 0;
        } else if duplicate {
            flow.duplicates += 1;
        }
        let first_lost = flow.board.judge_lost(flow.duplicate_threshold, flow.mss);
        if let Some(point) = self.recovery_point {
            outcome.in_recovery = true;
            if flow.una >= point {
                self.recovery_point = None;
                self.owed = false;
            }
        } else if duplicate
            && flow.una >= self.not_before
            && (flow.duplicates >= flow.duplicate_threshold || first_lost)
        {
            self.enter(flow, ack);
            outcome.entered = true;
            outcome.in_recovery = true;
        }
        if self.recovery_point.is_some() {
            flow.reduce(delivered, flow.board.pipe(flow.max));
        } else {
            flow.end_reduction();
        }
        outcome
    }

    fn on_timeout(&mut self, flow: &mut Flow, _moment: &Moment) {
        *self = Self {
            not_before: flow.max,
            ..Self::default()
        };
        flow.duplicates = 0;
        flow.board.clear();
        flow.end_reduction();
    }

    fn on_spurious_timeout(&mut self, _now: Nanos, una: u64) {
        self.not_before = una;
    }

    fn next(&self, flow: &Flow) -> Option<NextSegment> {
        if self.owed {
            return Some(NextSegment::Retransmit(flow.una..flow.una + flow.mss));
        }
        let cwnd = flow.control.cwnd();
        if self.recovery_point.is_some() {
            let pipe = flow.board.pipe(flow.max);
            let fits = pipe + flow.mss <= flow.limit();
            return if fits { self.next_seg(flow) } else { None };
        }
        if flow.limited_transmit && flow.duplicates > 0 && flow.nxt == flow.max {
            // §5 step 3: reported data has left the network.
            let pipe = flow.board.pipe(flow.max);
            return Some(NextSegment::Continue {
                room: cwnd.saturating_sub(pipe).max(flow.room(0)),
                skip_reported: true,
            });
        }
        Some(NextSegment::Continue {
            room: flow.room(0),
            skip_reported: true,
        })
    }

    fn on_sent(&mut self, flow: &mut Flow, _moment: &Moment, sent: Range<u64>, retransmit: bool) {
        flow.count_reduced(sent.end - sent.start);
        if self.owed {
            self.owed = false;
            flow.board.mark_retransmitted_to(sent.end);
        } else if let (Some(point), true) = (self.recovery_point, retransmit) {
            if flow
                .board
                .hole_from(flow.board.retransmitted_to())
                .is_some()
            {
                flow.board.mark_retransmitted_to(sent.end);
            } else {
                self.rescue = Some(point);
            }
        } else if self.recovery_point.is_none() && flow.duplicates > 0 {
            self.limited += sent.end - sent.start;
        }
    }

    fn recovering(&self) -> bool {
        self.recovery_point.is_some()
    }
}
