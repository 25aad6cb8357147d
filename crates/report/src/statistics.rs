//! Means over replications and what may be said from them: Student-t intervals, paired differences, prediction of one
//! more run, fairness.
//!
//! Nothing here decides what a simulation does, so logarithms and gammas of the platform are allowed (they sit inside
//! the t quantile); results are rounded to the printed digits before they are written.

use statrs::distribution::{ContinuousCDF, StudentsT};

#[cfg(test)]
mod tests;

/// Confidence of every interval that is shown: 95 %, two-sided.
pub const CONFIDENCE: f64 = 0.95;

/// The two-sided Student-t quantile for [`CONFIDENCE`]: `t(0.975, degrees_of_freedom)`. `None` for 0 degrees.
pub fn t_quantile(degrees_of_freedom: usize) -> Option<f64> {
    if degrees_of_freedom == 0 {
        return None;
    }
    let distribution = StudentsT::new(0.0, 1.0, degrees_of_freedom as f64).ok()?;
    Some(distribution.inverse_cdf(0.5 + CONFIDENCE / 2.0))
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
        let t = t_quantile(self.replications - 1)?;
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
    let mut differences = Vec::with_capacity(later.len().min(earlier.len()));
    let mut candidates = earlier.iter().peekable();
    for &(replication, value) in later {
        while candidates
            .next_if(|(other, _)| *other < replication)
            .is_some()
        {}
        if let Some((_, base)) = candidates.next_if(|(other, _)| *other == replication) {
            differences.push(value - base);
        }
    }
    Summary::of(&differences)
}
