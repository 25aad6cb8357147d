//! Statistics of a probe's samples, as named in specs.

use anabranch_settings::spelled;

/// A statistic of the samples of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregation {
    /// Mean of the value over time: each value is weighted by its duration.
    Mean,
    /// Fraction of the time during which the value is below `threshold`; 0 to 1.
    Below,
    /// Minimum of the values.
    Least,
    /// Maximum of the values.
    Most,
    /// Mean of the samples, all with the same weight.
    SampleMean,
    /// Number of samples.
    Count,
    /// Sum of the samples.
    Sum,
    /// Mean time between consecutive samples, seconds; no value for fewer than two samples.
    MeanGap,
    /// Time of the first sample, seconds from the start of the run; no value without samples.
    FirstTime,
}
spelled!(Aggregation: Aggregation::Mean = "mean", Aggregation::Below = "below", Aggregation::Least = "least", Aggregation::Most = "most",
    Aggregation::SampleMean = "sample-mean", Aggregation::Count = "count", Aggregation::Sum = "sum", Aggregation::MeanGap = "mean-gap", Aggregation::FirstTime = "first-time");

/// Weight of a sample in a mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weighting {
    /// Each value is weighted by its duration.
    #[default]
    Time,
    /// All samples have the same weight, as in a mean over the lines of a trace.
    Samples,
}
spelled!(Weighting: Weighting::Time = "time", Weighting::Samples = "samples");
