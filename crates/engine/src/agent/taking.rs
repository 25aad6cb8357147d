//! Statistics of samples, as named in specs.

use anabranch_settings::spelled;

/// A statistic of the samples of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
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
spelled!(Take: Take::Mean = "mean", Take::Below = "below", Take::Least = "least", Take::Most = "most",
    Take::SampleMean = "sample-mean", Take::Count = "count", Take::Sum = "sum", Take::MeanGap = "mean-gap", Take::FirstTime = "first-time");

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
