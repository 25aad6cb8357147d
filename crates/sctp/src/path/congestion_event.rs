//! The last response to losses and marks on a path.

use anabranch_wire::Tsn;

/// The last reduction of a path's window, for a loss or a mark.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CongestionEvent {
    until: Tsn,
    by_mark: bool,
}

impl CongestionEvent {
    /// `until`: the highest TSN sent at that time. Losses and marks up to it belong to the same
    /// congestion event. `by_mark`: the reduction was for a mark.
    pub(crate) fn new(until: Tsn, by_mark: bool) -> Self {
        Self { until, by_mark }
    }

    /// Whether the event covers a loss or mark of `tsn`.
    pub(crate) fn answers(&self, tsn: Tsn) -> bool {
        tsn.le(self.until)
    }

    /// Whether a mark caused the event.
    pub(crate) fn is_by_mark(&self) -> bool {
        self.by_mark
    }
}
