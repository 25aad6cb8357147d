//! Verdicts: whether what we measured agrees with what a paper printed, and with what ns-2.35 gives. The rules and
//! their reasons stand in `docs/VERDICTS.md`. A verdict is computed here and nowhere typed.

use std::fmt;

use crate::reference::{Mean, Published};
use crate::statistics::{Interval, Summary};

#[cfg(test)]
mod tests;

/// Replications below which a random experiment is not judged: the prediction interval would be so wide (27 standard
/// deviations to either side for two runs, five for three) that hardly a printed value could fall outside.
pub const MIN_REPLICATIONS: usize = 5;

/// What a comparison with a printed value came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The printed value is one that this experiment gives.
    Reproduced,
    /// It is not.
    Differs,
    /// There is no measured value, or none that could decide.
    NotAttempted,
}

impl Verdict {
    /// The words of the tables.
    pub const fn text(self) -> &'static str {
        match self {
            Verdict::Reproduced => "reproduced",
            Verdict::Differs => "differs",
            Verdict::NotAttempted => "not attempted",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.text())
    }
}

/// A verdict and how it came about, in a sentence.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// Its reason: the interval or the tolerance, and the value that did or did not lie in it.
    pub reason: String,
}

/// How a printed value is compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// A random experiment: the printed value is a single run, so it must lie in the 95 % interval for one more run of
    /// ours, widened by the printed rounding.
    OneMoreRun,
    /// An experiment without chance: the two values may differ by this much (in the value's unit) and by the printed
    /// rounding.
    Within(f64),
}

/// Compares a quantity measured in this unit with a printed one. Where units differ nothing is judged.
pub fn judge_in(
    measured: Option<&Summary>,
    unit: &str,
    published: &Published,
    rule: Rule,
) -> Judgement {
    let other = &published.unit;
    if measured.is_some() && !other.is_empty() && other != unit {
        return Judgement {
            verdict: Verdict::NotAttempted,
            reason: format!(
                "printed in {other} and measured in {unit}: the two cannot be compared"
            ),
        };
    }
    judge(measured, published, rule)
}

/// Compares a measured quantity with a printed one in the same unit.
pub fn judge(measured: Option<&Summary>, published: &Published, rule: Rule) -> Judgement {
    let Some(summary) = measured else {
        return Judgement {
            verdict: Verdict::NotAttempted,
            reason: "not measured in this run".to_owned(),
        };
    };
    let unit = unit_suffix(&published.unit);
    let interval = match rule {
        Rule::Within(tolerance) => Some(Interval::around(summary.mean, tolerance)),
        Rule::OneMoreRun if summary.replications < MIN_REPLICATIONS => None,
        Rule::OneMoreRun => summary.prediction(),
    };
    let Some(interval) = interval else {
        return Judgement {
            verdict: Verdict::NotAttempted,
            reason: format!(
                "{} of at least {MIN_REPLICATIONS} replications: too few to say how far a single run strays",
                summary.replications
            ),
        };
    };
    // The decimal digits are not exact in binary: a millionth of the rounding keeps the ends inclusive.
    let inside = interval
        .widened(published.half_unit() * (1.0 + 1e-6))
        .contains(published.value);
    let verdict = if inside {
        Verdict::Reproduced
    } else {
        Verdict::Differs
    };
    let reason = match rule {
        Rule::OneMoreRun => format!(
            "one more run would give {} to {}{unit}",
            digits(interval.low, 4),
            digits(interval.high, 4)
        ),
        Rule::Within(tolerance) => format!(
            "{}{unit} against the printed {}{unit}; allowed: {}its rounding",
            digits(summary.mean, 6),
            published.printed,
            if tolerance > 0.0 {
                format!("{}{unit} and ", digits(tolerance, 4))
            } else {
                String::new()
            }
        ),
    };
    Judgement { verdict, reason }
}

/// Ours beside a mean of an independent program.
#[derive(Clone, Debug, PartialEq)]
pub struct Beside {
    /// The program's key in `[reference]`.
    pub yardstick: String,
    /// The line of its file, counted from 1.
    pub line: u64,
    /// Its mean.
    pub mean: f64,
    /// Half the width of its 95 % interval; `None` for a single run.
    pub confidence: Option<f64>,
    /// Its replications.
    pub replications: u32,
    /// Whether the two 95 % intervals have a point in common, theirs widened by the rounding of its mean; `None` where either
    /// side has no interval.
    pub overlap: Option<bool>,
    /// Ours less theirs, in the value's unit; `None` without a value of ours.
    pub difference: Option<f64>,
}

impl Beside {
    /// The difference as a fraction of theirs; `None` where theirs is 0.
    pub fn relative(&self) -> Option<f64> {
        let difference = self.difference?;
        (self.mean != 0.0).then(|| difference / self.mean.abs())
    }
}

/// Significant digits that the mean of an independent program is taken to have.
const DIGITS: usize = 6;

/// Sets a measured quantity beside a mean of an independent program.
pub fn beside(measured: Option<&Summary>, yardstick: &str, other: &Mean) -> Beside {
    let ours =
        measured.and_then(|summary| Some(Interval::around(summary.mean, summary.confidence()?)));
    let theirs = other
        .confidence
        .map(|half| Interval::around(other.mean, half).widened(half_unit(other.mean, DIGITS)));
    Beside {
        yardstick: yardstick.to_owned(),
        line: other.line,
        mean: other.mean,
        confidence: other.confidence,
        replications: other.replications,
        overlap: ours.zip(theirs).map(|(ours, theirs)| ours.overlaps(theirs)),
        difference: measured.map(|summary| summary.mean - other.mean),
    }
}

/// A number with that many significant digits, without trailing zeros, never in exponent form.
pub fn digits(value: f64, significant: usize) -> String {
    let text = fixed(value, significant);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// A number with two significant digits, trailing zeros kept: the half width of an interval.
pub fn two_digits(value: f64) -> String {
    fixed(value, 2)
}

fn fixed(value: f64, significant: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value:.0}");
    }
    let decimals = (significant as i32 - 1 - exponent(value, significant)).max(0) as usize;
    format!("{value:.decimals$}")
}

/// The power of ten of the first of so many significant digits.
fn exponent(value: f64, significant: usize) -> i32 {
    // Read from the rounded decimal text, so that no logarithm of the platform decides a digit.
    let scientific = format!("{:.*e}", significant.saturating_sub(1), value);
    scientific
        .split_once('e')
        .and_then(|(_, text)| text.parse().ok())
        .unwrap_or(0)
}

/// Half a unit of the last of so many significant digits: what rounding to them may hide.
fn half_unit(value: f64, significant: usize) -> f64 {
    let last = exponent(value, significant) + 1 - significant as i32;
    format!("5e{}", last - 1).parse().unwrap_or(0.0)
}

/// The unit as written behind a number; nothing for pure numbers.
pub fn unit_suffix(unit: &str) -> String {
    match unit {
        "1" | "" => String::new(),
        unit => format!(" {unit}"),
    }
}
