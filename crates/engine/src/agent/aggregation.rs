//! Statistics of samples, as named in specs.

use anabranch_settings::spelled;

/// A statistic of the samples of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregation {
    /// The mean, weighted by the duration of each value.
    Mean,
    /// Fraction of the time in which the value is below `threshold`; 0 to 1.
    Below,
    /// The smallest value.
    Least,
    /// The largest value.
    Most,
    /// The mean of the samples, with equal weights.
    SampleMean,
    /// Number of samples.
    Count,
    /// The sum of the samples.
    Sum,
    /// The mean time between consecutive samples, seconds; no value for fewer than two samples.
    MeanGap,
    /// Time of the first sample, seconds from the start of the run; no value without samples.
    FirstTime,
}
spelled!(Aggregation: Aggregation::Mean = "mean", Aggregation::Below = "below", Aggregation::Least = "least", Aggregation::Most = "most",
    Aggregation::SampleMean = "sample-mean", Aggregation::Count = "count", Aggregation::Sum = "sum", Aggregation::MeanGap = "mean-gap", Aggregation::FirstTime = "first-time");

/// Weight of the samples of a window in a mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weighting {
    /// The duration of each value.
    #[default]
    Time,
    /// Equal weights, as in a mean over the lines of a trace.
    Samples,
}
spelled!(Weighting: Weighting::Time = "time", Weighting::Samples = "samples");
