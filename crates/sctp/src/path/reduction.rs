//! What was last answered of losses and marks on a path.

use anabranch_wire::Tsn;

/// The last reduction of a path's window, for a loss or a mark.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reduction {
    until: Tsn,
    by_mark: bool,
}

impl Reduction {
    /// `until`: the highest TSN sent by then. What is told of TSNs up to it is the same congestion. `by_mark`: it answered a
    /// mark.
    pub(crate) fn new(until: Tsn, by_mark: bool) -> Self {
        Self { until, by_mark }
    }

    /// Whether what is told of `tsn` was answered by it.
    pub(crate) fn answers(&self, tsn: Tsn) -> bool {
        tsn.le(self.until)
    }

    /// Whether it answered a mark.
    pub(crate) fn is_by_mark(&self) -> bool {
        self.by_mark
    }
}
