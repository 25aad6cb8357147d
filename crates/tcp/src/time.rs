//! Optional deadlines.

use anabranch_transport::Nanos;

/// The deadline, or the latest time for `None`. The minimum of several deadlines is computed after
/// every packet, and comparing plain numbers needs no branch.
#[inline(always)]
pub(crate) fn or_never(at: Option<Nanos>) -> Nanos {
    at.unwrap_or(Nanos::MAX)
}
