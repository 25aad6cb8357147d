//! Times that may not be set.

use anabranch_transport::Nanos;

/// The earlier of two times. It is asked for after every packet, where an iterator over all of them takes several times as long.
#[inline]
pub(crate) fn earlier(a: Option<Nanos>, b: Option<Nanos>) -> Option<Nanos> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
