//! Time as used by the protocols: nanoseconds since an origin chosen by the driver.

/// A point in time or a duration in nanoseconds. 2^64 ns are 584 years.
pub type Nanos = u64;

/// One microsecond.
pub const MICROSECOND: Nanos = 1_000;
/// One millisecond.
pub const MILLISECOND: Nanos = 1_000_000;
/// One second.
pub const SECOND: Nanos = 1_000_000_000;

/// Converts a duration to seconds, for reports and for estimators that compute in seconds.
pub fn seconds(span: Nanos) -> f64 {
    span as f64 / SECOND as f64
}

/// Converts a duration in seconds to the closest number of nanoseconds. Negative values and NaN
/// become 0, and values that are too large become the maximum.
pub fn from_seconds(seconds: f64) -> Nanos {
    (seconds * SECOND as f64).round() as Nanos
}
