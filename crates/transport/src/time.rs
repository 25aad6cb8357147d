//! Time as the protocols see it: nanoseconds since an origin that the driver chooses.

/// A point in time or a span of time, in nanoseconds. 2^64 ns are 584 years.
pub type Nanos = u64;

/// One microsecond.
pub const MICROSECOND: Nanos = 1_000;
/// One millisecond.
pub const MILLISECOND: Nanos = 1_000_000;
/// One second.
pub const SECOND: Nanos = 1_000_000_000;

/// A span in seconds, for reports and for estimators that work in seconds.
pub fn seconds(span: Nanos) -> f64 {
    span as f64 / SECOND as f64
}

/// The span nearest to `seconds`; negative and NaN become 0, too large becomes the largest.
pub fn from_seconds(seconds: f64) -> Nanos {
    (seconds * SECOND as f64).round() as Nanos
}
