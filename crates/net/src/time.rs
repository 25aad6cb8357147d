//! Durations of users and nanoseconds of the protocol.

use std::time::Duration;

use anabranch_transport::Nanos;

/// Nanoseconds; `u64::MAX` for what is longer.
pub(crate) fn nanos(duration: Duration) -> Nanos {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
