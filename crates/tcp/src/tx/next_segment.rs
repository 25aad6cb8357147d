//! Selection of the next segment according to loss recovery, the peer's window, and the segment
//! sizes worth sending.

use std::ops::Range;

use super::Sender;
use super::recovery::NextSegment;

/// Segment that should be sent next: its data, and whether a FIN follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub start: u64,
    pub len: usize,
    pub fin: bool,
    /// Loss recovery selected the segment for retransmission, so it is not new data.
    pub(super) retransmit: bool,
    /// The segment is a zero-window probe: one byte beyond a closed window, which does not count as
    /// sent.
    pub probe: bool,
}

impl Plan {
    /// Offset after the segment, including the FIN.
    pub(super) fn end(&self) -> u64 {
        self.start + self.len as u64 + u64::from(self.fin)
    }
}

impl Sender {
    /// Next segment that may be sent now; `None` if there is none.
    pub(crate) fn plan(&self) -> Option<Plan> {
        if self.probe_owed {
            return self.probe_plan();
        }
        // All written data is acknowledged. This is always the case at an end that only receives.
        if self.flow.una == self.flow.queued_to {
            return None;
        }
        let next = self
            .next_forward()
            .or_else(|| self.recovery.next(&self.flow));
        match next? {
            NextSegment::Retransmit(range) => self.plan_retransmission(range),
            NextSegment::Continue {
                room,
                skip_reported,
            } => self.plan_next(room, skip_reported),
        }
    }

    /// Segment sent after the persist timer expired. With a closed window this is one byte, which
    /// does not count as sent; otherwise as much as fits in the small window (RFC 9293 §3.8.6.2.1).
    fn probe_plan(&self) -> Option<Plan> {
        let start = self.flow.nxt;
        let window = self.flow.window_edge.saturating_sub(start);
        let unsent = self.buffer.end().saturating_sub(start);
        let len = unsent.min(window.clamp(1, self.flow.mss)) as usize;
        let fin = len == 0 && self.closing;
        (len > 0 || fin).then_some(Plan {
            start,
            len,
            fin,
            retransmit: false,
            probe: window == 0,
        })
    }

    fn plan_retransmission(&self, range: Range<u64>) -> Option<Plan> {
        let data_end = self.buffer.end().min(self.flow.max);
        let end = range.end.min(range.start + self.flow.mss).min(data_end);
        let len = end.saturating_sub(range.start) as usize;
        let fin = self.fin_follows(range.start + len as u64, self.flow.max);
        (len > 0 || fin).then_some(Plan {
            start: range.start,
            len,
            fin,
            retransmit: true,
            probe: false,
        })
    }

    /// Whether the FIN is next at offset `at`, and `at` is before `limit`.
    fn fin_follows(&self, at: u64, limit: u64) -> bool {
        self.closing && at == self.buffer.end() && at < limit
    }

    /// Segment at `SND.NXT`. After a timeout this is data sent before, without the ranges that the
    /// peer has reported; otherwise new data.
    fn plan_next(&self, room: u64, skip_reported: bool) -> Option<Plan> {
        let flow = &self.flow;
        let again = flow.nxt < flow.max;
        let start = if again && skip_reported {
            flow.board.not_sacked_from(flow.nxt)
        } else {
            flow.nxt
        };
        let again = again && start < flow.max;
        let room = room.saturating_sub(start - flow.nxt);
        let mut end = self.buffer.end().min(start + flow.mss);
        if let Some(reported) = flow
            .board
            .next_range_after(start)
            .filter(|_| again && skip_reported)
        {
            end = end.min(reported);
        }
        // The first unacknowledged segment is retransmitted even if the peer has reduced its
        // window.
        let window_edge = if again && start == flow.una {
            flow.window_edge.max(flow.max.min(end + 1))
        } else {
            flow.window_edge
        };
        let allowed = end.min(window_edge);
        let len = allowed.saturating_sub(start);
        let fin = self.fin_follows(start + len, window_edge);
        let worth =
            len == flow.mss || again || fin || self.worth_sending(start, len, allowed < end);
        let enough_room = len + u64::from(fin && len == 0) <= room;
        ((len > 0 || fin) && worth && enough_room).then_some(Plan {
            start,
            len: len as usize,
            fin,
            retransmit: false,
            probe: false,
        })
    }

    /// Whether less than a full segment of new data may be sent, according to silly window
    /// avoidance (RFC 9293 §3.8.6.2.1) and Nagle's algorithm.
    fn worth_sending(&self, start: u64, len: u64, cut_by_window: bool) -> bool {
        if len == 0 {
            return false;
        }
        if cut_by_window {
            return len * 2 >= self.widest_window;
        }
        !self.profile.nagle || start == self.flow.una || self.closing
    }
}
