//! Conversion of durations to nanoseconds of the protocol.

use std::time::Duration;

use anabranch_transport::Nanos;

/// Nanoseconds; `u64::MAX` for longer durations.
pub(crate) fn nanos(duration: Duration) -> Nanos {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
