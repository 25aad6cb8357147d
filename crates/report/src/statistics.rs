//! Statistics over replications: means, Student-t intervals, paired differences, prediction of one
//! more run, and fairness.
//!
//! These functions do not influence simulations, so the t quantile may use the logarithm and gamma
//! functions of the platform. Results should be rounded to the printed digits before they are
//! written.

use statrs::distribution::{ChiSquared, ContinuousCDF, Normal, StudentsT};

#[cfg(test)]
mod tests;

/// Confidence of all displayed intervals: 95 %, two-sided.
pub const CONFIDENCE: f64 = 0.95;

/// Two-sided Student-t quantile for [`CONFIDENCE`]: `t(0.975, degrees_of_freedom)`. `None` for 0
/// degrees.
pub fn t_quantile(degrees_of_freedom: usize) -> Option<f64> {
    t_quantile_at(CONFIDENCE, degrees_of_freedom)
}

/// Like [`t_quantile`], for another confidence between 0 and 1.
pub fn t_quantile_at(confidence: f64, degrees_of_freedom: usize) -> Option<f64> {
    Some(student(degrees_of_freedom)?.inverse_cdf(0.5 + confidence / 2.0))
}

fn student(degrees_of_freedom: usize) -> Option<StudentsT> {
    // 0 degrees of freedom are an error in the library.
    StudentsT::new(0.0, 1.0, degrees_of_freedom as f64).ok()
}

/// Maximum of scores. Larger scores are clipped, because the runs contain no information about such
/// improbable values.
const MAX_SCORE: f64 = 8.0;

/// Standard normal score of a value relative to the prediction of one more run. `slack`, the
/// possible rounding error, is subtracted from the distance to the mean. `None` for fewer than two
/// runs.
pub fn normal_score(runs: &Summary, value: f64, slack: f64) -> Option<f64> {
    let student = student(runs.replications - 1)?;
    let distance = value - runs.mean;
    let beyond = (distance.abs() - slack).max(0.0);
    if beyond == 0.0 {
        return Some(0.0);
    }
    let deviation = runs.deviation * (1.0 + 1.0 / runs.replications as f64).sqrt();
    if deviation == 0.0 {
        return Some(MAX_SCORE * distance.signum());
    }
    // Uses the lower tail, because small probabilities are represented more precisely than those
    // near 1.
    let tail = student.cdf(-beyond / deviation);
    Some(standard_quantile(tail).abs() * distance.signum())
}

/// Standard normal score of a rank among the runs.
pub fn rank_score(rank: Rank) -> f64 {
    standard_quantile((rank.place() - 0.5) / (rank.of as f64))
}

fn standard_quantile(probability: f64) -> f64 {
    let quantile = Normal::standard().inverse_cdf(probability);
    quantile.clamp(-MAX_SCORE, MAX_SCORE)
}

/// Probability that independent values from the same distributions as our runs deviate together as
/// far as these scores.
///
/// The result is twice the smaller probability of two tests. One tests whether all k scores deviate
/// to one side, by their sum (normal with variance k). The other tests whether they vary too much,
/// by the sum of their squares (chi-squared with k degrees of freedom). `None` without scores.
pub fn joint_probability(scores: &[f64]) -> Option<f64> {
    let count = scores.len() as f64;
    let chi_squared = ChiSquared::new(count).ok()?;
    let sum: f64 = scores.iter().sum();
    let shifted = 2.0 * Normal::standard().cdf(-sum.abs() / count.sqrt());
    let squares: f64 = scores.iter().map(|score| score * score).sum();
    let strayed = chi_squared.sf(squares);
    match scores {
        [_] => Some(shifted),
        _ => Some((2.0 * shifted.min(strayed)).min(1.0)),
    }
}

/// Rank of a value among runs, with its ties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rank {
    /// Number of runs below it.
    pub below: usize,
    /// Number of runs that equal it.
    pub equal: usize,
    /// Number of runs plus one, for the value itself.
    pub of: usize,
}

impl Rank {
    /// Rank of a value among runs. Runs within `slack` of the value count as equal.
    pub fn of(runs: &[f64], value: f64, slack: f64) -> Rank {
        Rank {
            below: runs.iter().filter(|run| **run < value - slack).count(),
            equal: runs
                .iter()
                .filter(|run| (**run - value).abs() <= slack)
                .count(),
            of: runs.len() + 1,
        }
    }

    /// The rank counted from 1; for equal values, the middle of their ranks.
    pub fn place(self) -> f64 {
        self.below as f64 + self.equal as f64 / 2.0 + 1.0
    }
}

/// Quantile of the sorted `values` at the fraction `part` (0 to 1), interpolated by definition 7 of
/// Hyndman and Fan, *Sample quantiles in statistical packages*, 1996. The median of an even number
/// of values is the mean of the middle two. `None` without values.
pub fn quantile(values: &[f64], part: f64) -> Option<f64> {
    let place = part * values.len().checked_sub(1)? as f64;
    let (below, above) = (
        values[place.floor() as usize],
        values[place.ceil() as usize],
    );
    Some(below + (above - below) * place.fract())
}

/// Narrowest interval between two runs that contains one more run with a probability of at least 95
/// %, for any distribution, and this probability. With too few runs, this is the interval from the
/// smallest to the largest run. `None` for fewer than two runs.
pub fn quantile_band(runs: &[f64]) -> Option<(Interval, f64)> {
    if runs.len() < 2 {
        return None;
    }
    let mut sorted = runs.to_vec();
    sorted.sort_by(f64::total_cmp);
    // One more run falls into each of the n + 1 gaps between runs with equal probability.
    let gaps = (runs.len() + 1) as f64;
    let cut = ((0.5 - CONFIDENCE / 2.0) * gaps).floor().max(1.0);
    let index = cut as usize - 1;
    let band = Interval {
        low: sorted[index],
        high: sorted[sorted.len() - 1 - index],
    };
    Some((band, 1.0 - 2.0 * cut / gaps))
}

/// Summary of one quantity over replications.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Number of replications, at least 1.
    pub replications: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Sample standard deviation (divisor n - 1); 0 for one replication.
    pub deviation: f64,
}

/// A closed interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// The interval `centre` ± `half_width`.
    pub fn around(centre: f64, half_width: f64) -> Self {
        Self {
            low: centre - half_width,
            high: centre + half_width,
        }
    }

    /// Centre of the interval.
    pub fn middle(self) -> f64 {
        f64::midpoint(self.low, self.high)
    }

    /// Half width of the interval.
    pub fn half_width(self) -> f64 {
        (self.high - self.low) / 2.0
    }

    /// Whether `value` is in the interval, ends included.
    pub fn contains(self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Whether the two intervals have a point in common.
    pub fn overlaps(self, other: Interval) -> bool {
        self.low <= other.high && other.low <= self.high
    }

    /// The interval extended by `margin` at each end.
    #[must_use]
    pub fn widened(self, margin: f64) -> Self {
        Self {
            low: self.low - margin,
            high: self.high + margin,
        }
    }
}

impl Summary {
    /// Summarizes a sample; `None` if it is empty.
    pub fn of(values: &[f64]) -> Option<Self> {
        let replications = values.len();
        if replications == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / replications as f64;
        let squares = values
            .iter()
            .map(|value| (value - mean) * (value - mean))
            .sum::<f64>();
        let deviation = if replications > 1 {
            (squares / (replications - 1) as f64).sqrt()
        } else {
            0.0
        };
        // Rounding errors in the mean of equal values are not counted as deviation.
        let deviation = if deviation > 1e-12 * mean.abs() {
            deviation
        } else {
            0.0
        };
        Some(Self {
            replications,
            mean,
            deviation,
        })
    }

    /// Half width of the 95 % Student-t interval of the mean; `None` for one replication.
    pub fn confidence(&self) -> Option<f64> {
        self.confidence_at(CONFIDENCE)
    }

    /// Like [`Self::confidence`], for another confidence between 0 and 1.
    pub fn confidence_at(&self, confidence: f64) -> Option<f64> {
        let t = t_quantile_at(confidence, self.replications - 1)?;
        Some(t * self.deviation / (self.replications as f64).sqrt())
    }

    /// 95 % prediction interval for one more run of the same experiment: mean ± t s √(1 + 1/n).
    /// `None` for one replication.
    pub fn prediction(&self) -> Option<Interval> {
        let t = t_quantile(self.replications - 1)?;
        let n = self.replications as f64;
        Some(Interval::around(
            self.mean,
            t * self.deviation * (1.0 + 1.0 / n).sqrt(),
        ))
    }
}

/// Summary of the differences `later - earlier` over the replications that both have. In the same
/// replication two protocols used the same random streams, so their difference varies less than
/// each value. Each side is a list of `(replication, value)` in ascending order of replication.
/// `None` if they have no replication in common.
pub fn paired_difference(later: &[(u32, f64)], earlier: &[(u32, f64)]) -> Option<Summary> {
    let differences = paired_differences(later, earlier);
    Summary::of(&differences.iter().map(|(_, it)| *it).collect::<Vec<_>>())
}

/// The differences by replication, without a summary.
pub fn paired_differences(later: &[(u32, f64)], earlier: &[(u32, f64)]) -> Vec<(u32, f64)> {
    let mut differences = Vec::with_capacity(later.len().min(earlier.len()));
    let mut candidates = earlier.iter().peekable();
    for &(replication, value) in later {
        while candidates
            .next_if(|(other, _)| *other < replication)
            .is_some()
        {}
        if let Some((_, base)) = candidates.next_if(|(other, _)| *other == replication) {
            differences.push((replication, value - base));
        }
    }
    differences
}
