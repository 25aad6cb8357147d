//! Means over replications and what may be said from them: Student-t intervals, paired differences, prediction of one
//! more run, fairness.
//!
//! Nothing here decides what a simulation does, so logarithms and gammas of the platform are allowed (they sit inside
//! the t quantile); results are rounded to the printed digits before they are written.

use statrs::distribution::{ChiSquared, ContinuousCDF, Normal, StudentsT};

#[cfg(test)]
mod tests;

/// Confidence of every interval that is shown: 95 %, two-sided.
pub const CONFIDENCE: f64 = 0.95;

/// The two-sided Student-t quantile for [`CONFIDENCE`]: `t(0.975, degrees_of_freedom)`. `None` for 0 degrees.
pub fn t_quantile(degrees_of_freedom: usize) -> Option<f64> {
    t_quantile_at(CONFIDENCE, degrees_of_freedom)
}

/// The same for another confidence between 0 and 1.
pub fn t_quantile_at(confidence: f64, degrees_of_freedom: usize) -> Option<f64> {
    Some(student(degrees_of_freedom)?.inverse_cdf(0.5 + confidence / 2.0))
}

fn student(degrees_of_freedom: usize) -> Option<StudentsT> {
    // The library takes 0 degrees for an error.
    StudentsT::new(0.0, 1.0, degrees_of_freedom as f64).ok()
}

/// Scores beyond this are cut: the runs say nothing about tails so far out.
const FARTHEST: f64 = 8.0;

/// How far a value lies from where one more run would lie, as a standard normal variable would; `slack` is taken off its
/// distance from the mean (what rounding may hide). `None` for fewer than two runs.
pub fn normal_score(runs: &Summary, value: f64, slack: f64) -> Option<f64> {
    let student = student(runs.replications - 1)?;
    let distance = value - runs.mean;
    let beyond = (distance.abs() - slack).max(0.0);
    if beyond == 0.0 {
        return Some(0.0);
    }
    let deviation = runs.deviation * (1.0 + 1.0 / runs.replications as f64).sqrt();
    if deviation == 0.0 {
        return Some(FARTHEST * distance.signum());
    }
    // The lower tail, which keeps its digits.
    let tail = student.cdf(-beyond / deviation);
    Some(standard_quantile(tail).abs() * distance.signum())
}

/// The same from the place of a value among the runs.
pub fn rank_score(rank: Rank) -> f64 {
    standard_quantile((rank.place() - 0.5) / (rank.of as f64))
}

fn standard_quantile(probability: f64) -> f64 {
    let quantile = Normal::standard().inverse_cdf(probability);
    quantile.clamp(-FARTHEST, FARTHEST)
}

/// The probability that independent values, each of which could be one of ours, lie together as far out as these scores say.
/// Two questions are asked and the smaller answer doubled: whether all lie to one side (the sum of the scores, normal with
/// variance k), and whether they stray too far (the sum of their squares, chi-squared with k degrees of freedom). `None` for no
/// score.
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

/// Where a value stands among runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rank {
    /// Runs below it.
    pub below: usize,
    /// Runs that equal it.
    pub equal: usize,
    /// The runs and the value itself.
    pub of: usize,
}

impl Rank {
    /// The rank of a value; runs within `slack` of it count as equal.
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

    /// Its place counted from 1, the middle one of those that are equal.
    pub fn place(self) -> f64 {
        self.below as f64 + self.equal as f64 / 2.0 + 1.0
    }
}

/// The value below which the share `part` (0 to 1) of the sorted `values` lies, interpolated between two of them: definition 7 of Hyndman and Fan,
/// *Sample quantiles in statistical packages*, 1996. The median of an even number of values is the mean of the middle two. `None` without values.
pub fn quantile(values: &[f64], part: f64) -> Option<f64> {
    let place = part * values.len().checked_sub(1)? as f64;
    let (below, above) = (
        values[place.floor() as usize],
        values[place.ceil() as usize],
    );
    Some(below + (above - below) * place.fract())
}

/// The narrowest pair of runs between which one more run lies with 95 % probability at least, whatever the distribution, or the
/// least and the greatest where there are too few; and that probability. `None` for fewer than two runs.
pub fn quantile_band(runs: &[f64]) -> Option<(Interval, f64)> {
    if runs.len() < 2 {
        return None;
    }
    let mut sorted = runs.to_vec();
    sorted.sort_by(f64::total_cmp);
    // One more run is as likely to fall into each of the n + 1 gaps.
    let gaps = (runs.len() + 1) as f64;
    let cut = ((0.5 - CONFIDENCE / 2.0) * gaps).floor().max(1.0);
    let index = cut as usize - 1;
    let band = Interval {
        low: sorted[index],
        high: sorted[sorted.len() - 1 - index],
    };
    Some((band, 1.0 - 2.0 * cut / gaps))
}

/// Sample of one quantity over replications, condensed.
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

    /// Its middle.
    pub fn middle(self) -> f64 {
        f64::midpoint(self.low, self.high)
    }

    /// Half its width.
    pub fn half_width(self) -> f64 {
        (self.high - self.low) / 2.0
    }

    /// Whether `value` lies inside, ends included.
    pub fn contains(self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Whether the two have a point in common.
    pub fn overlaps(self, other: Interval) -> bool {
        self.low <= other.high && other.low <= self.high
    }

    /// The same interval, wider by `margin` at both ends.
    #[must_use]
    pub fn widened(self, margin: f64) -> Self {
        Self {
            low: self.low - margin,
            high: self.high + margin,
        }
    }
}

impl Summary {
    /// Condenses a sample; `None` when it is empty.
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
        // Equal values whose mean was rounded do not vary.
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

    /// Half the width of the 95 % Student-t interval of the mean; `None` for one replication.
    pub fn confidence(&self) -> Option<f64> {
        self.confidence_at(CONFIDENCE)
    }

    /// The same for another confidence between 0 and 1.
    pub fn confidence_at(&self, confidence: f64) -> Option<f64> {
        let t = t_quantile_at(confidence, self.replications - 1)?;
        Some(t * self.deviation / (self.replications as f64).sqrt())
    }

    /// The 95 % interval in which one more run of the same experiment falls: mean ± t s √(1 + 1/n). `None` for one
    /// replication.
    pub fn prediction(&self) -> Option<Interval> {
        let t = t_quantile(self.replications - 1)?;
        let n = self.replications as f64;
        Some(Interval::around(
            self.mean,
            t * self.deviation * (1.0 + 1.0 / n).sqrt(),
        ))
    }
}

/// The differences `later - earlier` over the replications that both have, condensed. Two protocols compared in one
/// replication met the same random streams, so their difference varies less than either. Each side is a list of
/// `(replication, value)` in rising order of replication. `None` when no replication is common.
pub fn paired_difference(later: &[(u32, f64)], earlier: &[(u32, f64)]) -> Option<Summary> {
    let differences = paired_differences(later, earlier);
    Summary::of(&differences.iter().map(|(_, it)| *it).collect::<Vec<_>>())
}

/// The same by replication, not condensed.
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
