//! What is made of samples, as specs say it.

use anabranch_settings::spelled;

/// What is made of the samples of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// The mean, each value by the time it stood.
    Mean,
    /// Share of the time in which the value stood under `threshold`; 0 to 1.
    Below,
    /// The least value that stood.
    Least,
    /// The greatest value that stood.
    Most,
    /// The mean of the samples, each alike.
    SampleMean,
    /// How many samples there were.
    Count,
    /// The sum of the samples.
    Sum,
    /// The mean time from one sample to the next, seconds; no value where there were less than two.
    MeanGap,
    /// When the first sample was, seconds from the run's begin; no value where there was none.
    FirstTime,
}
spelled!(Take: Take::Mean = "mean", Take::Below = "below", Take::Least = "least", Take::Most = "most",
    Take::SampleMean = "sample-mean", Take::Count = "count", Take::Sum = "sum", Take::MeanGap = "mean-gap", Take::FirstTime = "first-time");

/// How samples of a window weigh in a mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weighting {
    /// Each value by the time it stood.
    #[default]
    Time,
    /// Each change alike, as a mean over lines of a trace.
    Samples,
}
spelled!(Weighting: Weighting::Time = "time", Weighting::Samples = "samples");
