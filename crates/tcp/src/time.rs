//! Times that may not be set.

use anabranch_transport::Nanos;

/// A time, or the last there is: the earliest of several is asked for after every packet, and numbers are compared without a branch.
#[inline(always)]
pub(crate) fn or_never(at: Option<Nanos>) -> Nanos {
    at.unwrap_or(Nanos::MAX)
}
