//! Verdicts on whether our results agree with the values printed in a paper and with those of
//! ns-2.35. `docs/VERDICTS.md` explains the rules and their reasons. Every verdict must be computed
//! here, and none entered by hand.

use std::fmt;

use anabranch_scenario::suggest::nearest;
use anabranch_scenario::unit::alike;

use crate::reference::{Mean, Published, Rounding};
use crate::statistics::{Interval, Rank, Summary, normal_score, quantile_band, rank_score};

#[cfg(test)]
mod tests;

/// Minimum number of replications for a verdict on a random experiment. With fewer, the prediction
/// interval would be so wide (15.6 standard deviations to either side for two runs, five for three)
/// that hardly any printed value could be outside.
pub const MIN_REPLICATIONS: usize = 5;

/// Minimum number of replications for verdicts by quantiles. With 19 runs, one more run falls
/// between the smallest and the largest with a probability of 90 %.
pub const MIN_FOR_QUANTILES: usize = 19;

/// Maximum half width of a narrow band, and of a precise printed value, relative to the printed
/// value.
pub const NARROW: f64 = 0.2;

/// Result of a comparison with a printed value, or of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Comparison: the band of our runs contains the printed value and is narrow. Claim: it holds.
    Reproduced,
    /// Comparison: the band of our runs contains the printed value, but is wide. Claim: the runs do
    /// not decide it.
    Compatible,
    /// Comparison: the band of our runs does not contain the printed value. Claim: it is false for
    /// our runs.
    Differs,
    /// There is no measured value that could decide.
    NotAttempted,
}

impl Verdict {
    /// All verdicts, best first.
    pub const ALL: [Verdict; 4] = [
        Verdict::Reproduced,
        Verdict::Compatible,
        Verdict::Differs,
        Verdict::NotAttempted,
    ];

    /// Text of the verdict in tables.
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

/// A verdict with its reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// Reason for the verdict, as a sentence.
    pub reason: String,
    /// Interval of values that count as agreeing, without the rounding of the printed value; `None`
    /// if there is no verdict.
    pub band: Option<Interval>,
    /// Rank of the printed value among the runs; `None` if they are not random.
    pub rank: Option<Rank>,
    /// Deviation of the printed value as a standard normal score; `None` if the runs are not
    /// random.
    pub score: Option<f64>,
    /// Remark about the printed value: it is too imprecise to be reproduced, its unit cannot be
    /// converted, or its name matches nothing.
    pub remark: Option<String>,
}

impl Judgement {
    /// No verdict, because the file of printed values has an error; `reason` describes it.
    pub fn mismatched(reason: String) -> Judgement {
        Judgement {
            remark: Some(reason.clone()),
            ..Judgement::none(reason)
        }
    }

    /// No verdict, for this reason.
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

/// Rule of a comparison with a printed value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// For a random experiment. The printed value is a single run, so it must be in the 95 %
    /// interval for one more of our runs, widened by the printed rounding.
    OneMoreRun,
    /// For a quantity that is close to a bound. Like [`Rule::OneMoreRun`], but with quantiles of
    /// the runs, which require no assumption about the distribution.
    Quantiles,
    /// For a deterministic experiment. The two values may differ by this amount (in the unit of the
    /// value) and by the printed rounding.
    Within(f64),
}

/// Compares runs of a quantity in `unit` with a printed value. There is no verdict if the unit of
/// the printed value cannot be converted.
pub fn judge_in(runs: &[f64], unit: &str, published: &Published, rule: Rule) -> Judgement {
    match published.factor(unit) {
        Some(factor) => PrintedValue {
            published,
            unit,
            factor,
        }
        .judge(runs, rule),
        None if runs.is_empty() => Judgement::none(NOT_MEASURED.to_owned()),
        None => Judgement::mismatched(not_convertible(&published.unit, unit)),
    }
}

/// Compares runs with a printed value in the same unit.
pub fn judge(runs: &[f64], published: &Published, rule: Rule) -> Judgement {
    judge_in(runs, &published.unit, published, rule)
}

impl Published {
    /// The printed value in another unit; the digits as printed if the unit is the same or cannot
    /// be converted.
    pub fn in_unit_of(&self, unit: &str) -> String {
        match self.value_in(unit) {
            Some(value) if !self.unit.is_empty() && self.unit != unit => digits(value, 6),
            _ => self.printed.clone(),
        }
    }

    /// The digits as printed, followed by the unit if it differs from `unit`.
    pub fn shown_with(&self, unit: &str) -> String {
        match self.unit.is_empty() || self.unit == unit {
            true => self.printed.clone(),
            false => format!("{}{}", self.printed, unit_suffix(&self.unit)),
        }
    }
}

const NOT_MEASURED: &str = "not measured in this run";

/// Reason why values in the two units are not compared.
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

/// A printed value and the unit in which it is compared with runs.
struct PrintedValue<'a> {
    published: &'a Published,
    unit: &'a str,
    /// Factor that converts the printed unit to `unit`.
    factor: f64,
}

impl PrintedValue<'_> {
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
        // Range of values that could be printed this way: its middle and its half width. The half
        // width is increased by one millionth, so that the ends belong to the range although
        // decimal digits are not exact in binary.
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

    /// The relative half width of the printed value, as text; `None` unless the value is so
    /// imprecise that agreement means little.
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

    /// The reason for the verdict on a deterministic experiment.
    fn within(&self, summary: &Summary, tolerance: f64) -> String {
        let (published, unit) = (self.published, unit_suffix(self.unit));
        let allowed = match tolerance > 0.0 {
            true => format!("{}{unit} and ", digits(tolerance, 4)),
            false => String::new(),
        };
        let rest = match (published.tolerance, published.rest) {
            (Some(_), _) => "the reading tolerance",
            (None, Rounding::Rounded) => "its rounding",
            (None, Rounding::Truncated) => "the digits cut off",
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

/// Comparison with a mean from an independent program.
#[derive(Clone, Debug, PartialEq)]
pub struct BaselineComparison {
    /// Key of the program in `[reference]`.
    pub baseline: String,
    /// Line in its file, counted from 1.
    pub line: u64,
    /// Mean of the program.
    pub mean: f64,
    /// Half width of its 95 % interval; `None` for a single run.
    pub confidence: Option<f64>,
    /// Number of its replications.
    pub replications: u32,
    /// Whether the two 95 % intervals overlap, after the interval of the program is widened by the
    /// rounding of its mean; `None` if either side has no interval.
    pub overlap: Option<bool>,
    /// Our mean minus that of the program, in the unit of the value; `None` if we have no value.
    pub difference: Option<f64>,
}

impl BaselineComparison {
    /// The difference relative to the mean of the program; `None` if that mean is 0.
    pub fn relative(&self) -> Option<f64> {
        let difference = self.difference?;
        (self.mean != 0.0).then(|| difference / self.mean.abs())
    }
}

/// Number of significant digits that is assumed for the mean of an independent program.
const DIGITS: usize = 6;

/// Compares a measured quantity with a mean from an independent program.
pub fn with_baseline(
    measured: Option<&Summary>,
    baseline: &str,
    other: &Mean,
) -> BaselineComparison {
    let ours =
        measured.and_then(|summary| Some(Interval::around(summary.mean, summary.confidence()?)));
    let theirs = other
        .confidence
        .map(|half| Interval::around(other.mean, half).widened(half_unit(other.mean, DIGITS)));
    BaselineComparison {
        baseline: baseline.to_owned(),
        line: other.line,
        mean: other.mean,
        confidence: other.confidence,
        replications: other.replications,
        overlap: ours.zip(theirs).map(|(ours, theirs)| ours.overlaps(theirs)),
        difference: measured.map(|summary| summary.mean - other.mean),
    }
}

/// Formats a number with `significant` significant digits, without trailing zeros and without
/// exponent.
pub fn digits(value: f64, significant: usize) -> String {
    let text = fixed(value, significant);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// Formats a number, such as the half width of an interval, with two significant digits and
/// trailing zeros.
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

/// Power of ten of the first of `significant` significant digits.
fn exponent(value: f64, significant: usize) -> i32 {
    // Derived from the rounded decimal text, because a logarithm may differ between platforms.
    let scientific = format!("{:.*e}", significant.saturating_sub(1), value);
    scientific
        .split_once('e')
        .and_then(|(_, text)| text.parse().ok())
        .unwrap_or(0)
}

/// Half a unit of the last of `significant` digits, which is the maximum rounding error.
fn half_unit(value: f64, significant: usize) -> f64 {
    let last = exponent(value, significant) + 1 - significant as i32;
    format!("5e{}", last - 1).parse().unwrap_or(0.0)
}

/// The unit with a space, to be appended to a number; empty for dimensionless numbers.
pub fn unit_suffix(unit: &str) -> String {
    match unit {
        "1" | "" => String::new(),
        unit => format!(" {unit}"),
    }
}
