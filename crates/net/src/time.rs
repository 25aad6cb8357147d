//! Conversion of durations to nanoseconds.

use std::time::Duration;

use anabranch_transport::Nanos;

/// The duration in nanoseconds; `u64::MAX` for durations that do not fit.
pub(crate) fn nanos(duration: Duration) -> Nanos {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
