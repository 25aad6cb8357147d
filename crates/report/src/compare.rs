//! Verdicts: whether what we measured agrees with what a paper printed, and with what ns-2.35 gives. The rules and
//! their reasons stand in `docs/VERDICTS.md`. A verdict is computed here and nowhere typed.

use std::fmt;

use anabranch_scenario::nearest::nearest;
use anabranch_scenario::unit::alike;

use crate::reference::{Mean, Published, Rest};
use crate::statistics::{Interval, Rank, Summary, normal_score, quantile_band, rank_score};

#[cfg(test)]
mod tests;

/// Replications below which a random experiment is not judged: the prediction interval would be so wide (15.6 standard
/// deviations to either side for two runs, five for three) that hardly a printed value could fall outside.
pub const MIN_REPLICATIONS: usize = 5;

/// Replications below which quantiles are not judged by: the least and the greatest of 19 runs hold one more with 90 %.
pub const MIN_FOR_QUANTILES: usize = 19;

/// Half the width of a narrow band, and of a narrow printed number, as a share of the printed value.
pub const NARROW: f64 = 0.2;

/// What a comparison with a printed value came to, or a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The printed value is one that this experiment gives, and only values near it are. The claim holds.
    Reproduced,
    /// The printed value is one that this experiment gives, but so are values far from it. The runs do not decide the claim.
    Compatible,
    /// It is not one that this experiment gives. The claim is false for our runs.
    Differs,
    /// There is no measured value, or none that could decide.
    NotAttempted,
}

impl Verdict {
    /// All of them, the best first.
    pub const ALL: [Verdict; 4] = [
        Verdict::Reproduced,
        Verdict::Compatible,
        Verdict::Differs,
        Verdict::NotAttempted,
    ];

    /// The words of the tables.
    pub const fn text(self) -> &'static str {
        match self {
            Verdict::Reproduced => "reproduced",
            Verdict::Compatible => "compatible",
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

/// A verdict and how it came about.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// Its reason, in a sentence.
    pub reason: String,
    /// Where a value counts as one of ours, before printed rounding is allowed for; `None` where nothing could be judged.
    pub band: Option<Interval>,
    /// The printed value's place among the runs, where chance is in them.
    pub rank: Option<Rank>,
    /// How far out it lies, as a standard normal variable would; `None` where there is no chance in the runs.
    pub score: Option<f64>,
    /// What a reader has to know of the printed number beside the verdict: that it is too wide to be reproduced, in a unit that cannot be
    /// converted, or under a name that nothing bears.
    pub remark: Option<String>,
}

impl Judgement {
    /// No verdict, and why, where the file of printed numbers has to be changed for one.
    pub fn astray(reason: String) -> Judgement {
        Judgement {
            remark: Some(reason.clone()),
            ..Judgement::none(reason)
        }
    }

    /// No verdict, and why.
    pub fn none(reason: String) -> Judgement {
        Judgement {
            verdict: Verdict::NotAttempted,
            reason,
            band: None,
            rank: None,
            score: None,
            remark: None,
        }
    }
}

/// How a printed value is compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// A random experiment: the printed value is a single run, so it must lie in the 95 % interval for one more run of
    /// ours, widened by the printed rounding.
    OneMoreRun,
    /// The same for a quantity near its bound: between quantiles of the runs, whatever their distribution.
    Quantiles,
    /// An experiment without chance: the two values may differ by this much (in the value's unit) and by the printed
    /// rounding.
    Within(f64),
}

/// Compares a quantity measured in this unit with a printed one, which is converted. Where it cannot be, nothing is judged.
pub fn judge_in(runs: &[f64], unit: &str, published: &Published, rule: Rule) -> Judgement {
    match published.factor(unit) {
        Some(factor) => Bench {
            published,
            unit,
            factor,
        }
        .judge(runs, rule),
        None if runs.is_empty() => Judgement::none(NOT_MEASURED.to_owned()),
        None => Judgement::astray(not_convertible(&published.unit, unit)),
    }
}

/// Compares the values of some runs with a printed one in the same unit.
pub fn judge(runs: &[f64], published: &Published, rule: Rule) -> Judgement {
    judge_in(runs, &published.unit, published, rule)
}

impl Published {
    /// The digits as printed, or the number in a unit where that is another; as printed where it cannot be shown in that.
    pub fn in_unit_of(&self, unit: &str) -> String {
        match self.value_in(unit) {
            Some(value) if !self.unit.is_empty() && self.unit != unit => digits(value, 6),
            _ => self.printed.clone(),
        }
    }

    /// The digits as printed, with their unit where it is not that of the numbers they stand with.
    pub fn shown_with(&self, unit: &str) -> String {
        match self.unit.is_empty() || self.unit == unit {
            true => self.printed.clone(),
            false => format!("{}{}", self.printed, unit_suffix(&self.unit)),
        }
    }
}

const NOT_MEASURED: &str = "not measured in this run";

/// Why a number in one unit is not compared with one in another.
pub(crate) fn not_convertible(printed: &str, measured: &str) -> String {
    let mut allowed = vec![measured];
    for unit in alike(measured).filter(|unit| *unit != measured) {
        allowed.push(unit);
    }
    let near = nearest(printed, allowed.iter().copied());
    let hint = near.map_or(String::new(), |near| format!("; did you mean {near:?}?"));
    format!(
        "printed in {printed:?} and measured in {measured:?}; allowed: {}{hint}",
        allowed.join(", ")
    )
}

/// A printed number and the unit in which it is held against runs.
struct Bench<'a> {
    published: &'a Published,
    unit: &'a str,
    /// How many of `unit` the printed unit holds.
    factor: f64,
}

impl Bench<'_> {
    fn judge(&self, runs: &[f64], rule: Rule) -> Judgement {
        let Some(summary) = Summary::of(runs) else {
            return Judgement::none(NOT_MEASURED.to_owned());
        };
        let needed = match rule {
            Rule::Within(_) => 1,
            Rule::OneMoreRun => MIN_REPLICATIONS,
            Rule::Quantiles => MIN_FOR_QUANTILES,
        };
        if runs.len() < needed {
            let reason = format!(
                "{} of at least {needed} replications: too few to say how far a single run strays",
                runs.len()
            );
            return Judgement::none(reason);
        }
        // What may be printed so: the middle of it, and how far it reaches to either side. The decimal digits are not exact in binary: a
        // millionth keeps the ends inclusive.
        let range = self.published.range();
        let printed = range.middle() * self.factor;
        let rounding = range.half_width() * self.factor * (1.0 + 1e-6);
        let rank = Rank::of(runs, printed, rounding);
        let (band, score, likely) = match rule {
            Rule::Within(tolerance) => (Some(Interval::around(summary.mean, tolerance)), None, 1.0),
            Rule::OneMoreRun => {
                let score = normal_score(&summary, printed, rounding);
                (summary.prediction(), score, 0.95)
            }
            Rule::Quantiles => match quantile_band(runs) {
                Some((band, likely)) => (Some(band), Some(rank_score(rank)), likely),
                None => (None, None, 0.0),
            },
        };
        let Some(band) = band else {
            return Judgement::none("a single run has no spread".to_owned());
        };
        let narrow = NARROW * (self.published.value * self.factor).abs();
        let agrees = band.widened(rounding).contains(printed);
        let coarse = self.coarse();
        let verdict = match agrees {
            false => Verdict::Differs,
            true if coarse.is_some() => Verdict::Compatible,
            true if band.half_width() > narrow && score.is_some() => Verdict::Compatible,
            true => Verdict::Reproduced,
        };
        let mut reason = match rule {
            Rule::Within(tolerance) => self.within(&summary, tolerance),
            Rule::OneMoreRun | Rule::Quantiles => format!(
                "one more run would give {} to {}{} with {:.0} %; rank {} of {}",
                digits(band.low, 4),
                digits(band.high, 4),
                unit_suffix(self.unit),
                100.0 * likely,
                rank.place(),
                rank.of
            ),
        };
        if let (Some(coarse), true) = (&coarse, agrees) {
            reason.push_str("; ");
            reason.push_str(coarse);
        }
        Judgement {
            verdict,
            reason,
            band: Some(band),
            rank: score.map(|_| rank),
            score,
            remark: coarse.filter(|_| agrees),
        }
    }

    /// How wide the printed number is, where that is too wide for agreement to show much.
    fn coarse(&self) -> Option<String> {
        let published = self.published;
        let spread = published.spread();
        if spread <= NARROW * (1.0 + 1e-6) {
            return None;
        }
        let range = published.range();
        let share = match spread.is_finite() {
            true => format!(" ({:.0} % to either side)", 100.0 * spread),
            false => String::new(),
        };
        Some(format!(
            "the printed {} stands for {} to {}{}{share}: compatible at most",
            published.printed,
            digits(range.low, 4),
            digits(range.high, 4),
            unit_suffix(&published.unit),
        ))
    }

    /// The reason of a verdict on an experiment without chance.
    fn within(&self, summary: &Summary, tolerance: f64) -> String {
        let (published, unit) = (self.published, unit_suffix(self.unit));
        let allowed = match tolerance > 0.0 {
            true => format!("{}{unit} and ", digits(tolerance, 4)),
            false => String::new(),
        };
        let rest = match (published.tolerance, published.rest) {
            (Some(_), _) => "the reading tolerance",
            (None, Rest::Rounded) => "its rounding",
            (None, Rest::Truncated) => "the digits cut off",
        };
        let printed_unit = match published.unit.is_empty() {
            true => unit.clone(),
            false => unit_suffix(&published.unit),
        };
        format!(
            "{}{unit} against the printed {}{printed_unit}; allowed: {allowed}{rest}",
            digits(summary.mean, 6),
            published.printed
        )
    }
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
