//! Conversion of optional deadlines for fast comparison.

use anabranch_transport::Nanos;

/// Returns the deadline, or the latest possible time for `None`. The minimum of several deadlines
/// is computed after every packet, and the comparison of plain numbers needs no branch.
#[inline(always)]
pub(crate) fn or_never(at: Option<Nanos>) -> Nanos {
    at.unwrap_or(Nanos::MAX)
}
