//! Pipe algorithm of 1996 (Fall and Floyd, "Simulation-based Comparisons of Tahoe, Reno, and SACK
//! TCP") with the details of Sack1 in ns-2.
//!
//! `pipe`, a number of segments, is estimated at the start of recovery and then adjusted by one for
//! each acknowledgement and each segment sent. Gaps are retransmitted in order, each only once. The
//! acknowledgement that starts a recovery triggers only the retransmission, and no further segment.
//! A timeout clears the scoreboard, and sending restarts at the cumulative point.

use std::ops::Range;

use anabranch_congestion::LossCause;
use anabranch_transport::Nanos;

use super::{Acknowledgement, Flow, Moment, NextSegment, Outcome, Recovery, note_blocks};

/// Offset of the first data byte; the SYN has offset 0.
const FIRST: u64 = 1;

#[derive(Debug)]
pub(super) struct Sack1 {
    recovering: bool,
    /// Offset after the highest byte sent when the last loss was detected. Recovery ends when the
    /// cumulative point reaches it, and no fast retransmit occurs before the cumulative point has
    /// passed it.
    recover: u64,
    /// Estimated number of segments in the network; may become negative.
    pipe: i64,
    /// The retransmission that starts recovery is pending.
    owed: bool,
    /// No further segment may be sent before the next acknowledgement.
    held: bool,
    /// No new data was acknowledged since the last timeout.
    timed_out: bool,
}

impl Default for Sack1 {
    fn default() -> Self {
        Self {
            recovering: false,
            recover: FIRST,
            pipe: 0,
            owed: false,
            held: false,
            timed_out: false,
        }
    }
}

impl Sack1 {
    fn enter(&mut self, flow: &mut Flow, ack: &Acknowledgement<'_>) {
        self.recover = flow.max;
        self.pipe =
            flow.flightsize().div_ceil(flow.mss) as i64 - i64::from(flow.duplicate_threshold);
        self.recovering = true;
        self.owed = true;
        self.held = true;
        flow.board.begin_recovery();
        flow.cut(ack.moment.now, LossCause::FastRetransmit, 0);
    }

    fn normal_ack(&mut self, flow: &mut Flow, ack: &Acknowledgement<'_>) -> Outcome {
        if ack.advanced > 0 {
            self.timed_out = false;
            flow.duplicates = 0;
            let reported = flow.board.advance(flow.una);
            flow.board.clear();
            return Outcome {
                sample: true,
                restart_timer: true,
                delivered: ack.advanced.saturating_sub(reported),
                ..Outcome::default()
            };
        }
        let mut outcome = Outcome::default();
        if !self.timed_out {
            outcome.newly_sacked = note_blocks(flow, ack.blocks);
            outcome.delivered = outcome.newly_sacked;
        }
        if outcome.newly_sacked > 0 {
            outcome.duplicate = true;
            flow.duplicates += 1;
            // Several losses in one window of data reduce the window only once ("bugfix" in ns-2).
            // The exception is the first window, while only the SYN is acknowledged.
            let may_enter = flow.una > self.recover || flow.una == FIRST;
            if flow.duplicates == flow.duplicate_threshold && may_enter {
                self.enter(flow, ack);
                outcome.entered = true;
                outcome.in_recovery = true;
            }
        }
        outcome
    }

    fn recovery_ack(&mut self, flow: &mut Flow, ack: &Acknowledgement<'_>) -> Outcome {
        self.pipe -= 1;
        self.held = false;
        let mut outcome = Outcome {
            in_recovery: true,
            restart_timer: true,
            ..Outcome::default()
        };
        outcome.delivered = ack.advanced.saturating_sub(flow.board.advance(flow.una));
        if flow.una >= self.recover {
            self.recovering = false;
            self.owed = false;
            self.recover = FIRST;
            flow.duplicates = 0;
            flow.board.clear();
            outcome.sample = true;
            return outcome;
        }
        outcome.newly_sacked = note_blocks(flow, ack.blocks);
        outcome.delivered += outcome.newly_sacked;
        if ack.advanced > 0 {
            // After a partial acknowledgement, the retransmission has left the network, and so has
            // the original of the segment.
            self.pipe -= 1;
            outcome.end_backoff = true;
        } else {
            outcome.duplicate = true;
        }
        outcome
    }
}

impl Recovery for Sack1 {
    fn on_ack(&mut self, flow: &mut Flow, ack: &Acknowledgement<'_>) -> Outcome {
        if self.recovering {
            self.recovery_ack(flow, ack)
        } else {
            self.normal_ack(flow, ack)
        }
    }

    #[inline]
    fn pass(&mut self, flow: &mut Flow, to: u64) -> bool {
        if self.recovering {
            return false;
        }
        self.timed_out = false;
        flow.duplicates = 0;
        flow.board.restart(to);
        true
    }

    fn on_timeout(&mut self, flow: &mut Flow, _moment: &Moment) {
        *self = Self {
            recover: flow.max,
            timed_out: true,
            ..Self::default()
        };
        flow.duplicates = 0;
        flow.board.clear();
    }

    fn on_spurious_timeout(&mut self, _now: Nanos, una: u64) {
        // A new recovery requires that `una` is greater than `recover`.
        self.recover = una - 1;
    }

    fn next(&self, flow: &Flow) -> Option<NextSegment> {
        if self.owed {
            return Some(NextSegment::Retransmit(flow.una..flow.una + flow.mss));
        }
        if !self.recovering {
            return Some(NextSegment::Continue {
                room: flow.room(flow.limited_extra()),
                skip_reported: false,
            });
        }
        let window = (flow.control.cwnd() / flow.mss) as i64;
        if self.held || self.pipe >= window {
            return None;
        }
        match flow.board.hole_from(flow.board.retransmitted_to()) {
            Some(hole) => (hole.start < flow.window_edge).then_some(NextSegment::Retransmit(hole)),
            None => Some(NextSegment::Continue {
                room: u64::MAX,
                skip_reported: false,
            }),
        }
    }

    fn on_sent(&mut self, flow: &mut Flow, _moment: &Moment, sent: Range<u64>, retransmit: bool) {
        if retransmit {
            flow.board.mark_retransmitted_to(sent.end);
        }
        if self.owed {
            self.owed = false;
        } else if self.recovering {
            self.pipe += 1;
        }
    }

    fn recovering(&self) -> bool {
        self.recovering
    }

    fn pipe(&self, flow: &Flow) -> u64 {
        match self.recovering {
            true => self.pipe.max(0) as u64 * flow.mss,
            false => flow.flightsize(),
        }
    }
}
