//! Congestion event of a path: the last reduction of cwnd.

use anabranch_wire::Tsn;

/// Last reduction of a path's cwnd because of losses or ECN marks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CongestionEvent {
    until: Tsn,
    by_mark: bool,
}

impl CongestionEvent {
    /// `until` is the highest TSN sent when cwnd was reduced. Losses and marks up to this TSN
    /// belong to the same congestion event. `by_mark`: an ECN mark caused the reduction.
    pub(crate) fn new(until: Tsn, by_mark: bool) -> Self {
        Self { until, by_mark }
    }

    /// Whether a loss or mark of `tsn` belongs to this event, so that cwnd is not reduced again.
    pub(crate) fn answers(&self, tsn: Tsn) -> bool {
        tsn.le(self.until)
    }

    /// Whether an ECN mark caused the event.
    pub(crate) fn is_by_mark(&self) -> bool {
        self.by_mark
    }
}
