//! Fast retransmit and fast recovery without SACK: Reno with the partial acknowledgements of
//! NewReno (RFC 5681 §3.2, RFC 6582).
//!
//! Window inflation is stored in this type and not in the controller, which should see only the
//! reduction itself.

use std::ops::Range;

use anabranch_congestion::LossCause;
use anabranch_transport::Nanos;

use super::{Acknowledgement, Flow, Moment, NextSegment, Outcome, Recovery};

#[derive(Debug, Default)]
pub(super) struct NewReno {
    recovering: bool,
    /// Offset after the highest byte sent when the last loss was detected (RFC 6582 §3.2).
    recover: u64,
    /// Number of bytes by which duplicate acknowledgements inflate the window, less the deflation
    /// by partial acknowledgements.
    inflation: i64,
    /// The first unacknowledged segment must be retransmitted.
    owed: bool,
    /// A partial acknowledgement arrived in this recovery.
    had_partial: bool,
    /// Bytes sent by limited transmit since the cumulative point last advanced.
    limited: u64,
}

impl NewReno {
    fn duplicate(&mut self, flow: &mut Flow, ack: &Acknowledgement<'_>) -> Outcome {
        let mut outcome = Outcome {
            in_recovery: self.recovering,
            duplicate: true,
            ..Outcome::default()
        };
        flow.duplicates += 1;
        if self.recovering {
            self.inflation += flow.mss as i64;
        } else if flow.duplicates == flow.duplicate_threshold && flow.una > self.recover {
            self.recovering = true;
            self.recover = flow.max;
            self.owed = true;
            self.had_partial = false;
            self.inflation = i64::from(flow.duplicate_threshold) * flow.mss as i64;
            flow.cut(ack.moment.now, LossCause::FastRetransmit, self.limited);
            outcome.entered = true;
            outcome.in_recovery = true;
        }
        outcome
    }

    fn advance(&mut self, flow: &mut Flow, ack: &Acknowledgement<'_>) -> Outcome {
        let mut outcome = Outcome {
            sample: true,
            restart_timer: true,
            ..Outcome::default()
        };
        outcome.in_recovery = self.recovering;
        self.limited = 0;
        if self.recovering && flow.una < self.recover {
            self.owed = true;
            self.inflation -= ack.advanced as i64;
            if ack.advanced >= flow.mss {
                self.inflation += flow.mss as i64;
            }
            outcome.restart_timer = !self.had_partial;
            self.had_partial = true;
        } else {
            self.recovering = false;
            self.owed = false;
            self.inflation = 0;
            flow.duplicates = 0;
        }
        outcome
    }
}

impl Recovery for NewReno {
    fn on_ack(&mut self, flow: &mut Flow, ack: &Acknowledgement<'_>) -> Outcome {
        flow.board.advance(flow.una);
        let outcome = if ack.advanced > 0 {
            self.advance(flow, ack)
        } else if ack.duplicate {
            self.duplicate(flow, ack)
        } else {
            Outcome {
                in_recovery: self.recovering,
                ..Outcome::default()
            }
        };
        Outcome {
            delivered: ack.advanced,
            ..outcome
        }
    }

    fn on_timeout(&mut self, flow: &mut Flow, _moment: &Moment) {
        *self = Self {
            recover: flow.max,
            ..Self::default()
        };
        flow.duplicates = 0;
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
        let window = (flow.control.cwnd() as i64 + self.inflation).max(flow.mss as i64) as u64;
        Some(NextSegment::Continue {
            room: (flow.una + window).saturating_sub(flow.nxt),
            skip_reported: false,
        })
    }

    fn on_sent(&mut self, flow: &mut Flow, _moment: &Moment, sent: Range<u64>, retransmit: bool) {
        if retransmit {
            self.owed = false;
        } else if !self.recovering && flow.duplicates > 0 {
            self.limited += sent.end - sent.start;
        }
    }

    fn recovering(&self) -> bool {
        self.recovering
    }
}
