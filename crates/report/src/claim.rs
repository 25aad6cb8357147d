//! Evaluation of claims with the results of runs: an interval and a verdict at each point.
//! `docs/VERDICTS.md` explains the rules.

use std::collections::BTreeMap;

use anabranch_scenario::claim::{Best, Bound, Claim, ClaimKind, ClaimSide, Values};
use anabranch_scenario::records::Results;
use anabranch_scenario::value::{Point, SweepValue};
use anabranch_scenario::{Experiment, Spec};

use crate::compare::{MIN_REPLICATIONS, Verdict, digits, unit_suffix};
use crate::derive::same;
use crate::statistics::{CONFIDENCE, Interval, Summary, paired_differences};
use crate::table::{alone, axis, by_point, in_unit, values};
use crate::unit;

mod file;
mod slope;
#[cfg(test)]
mod tests;

pub use file::write_csv;

/// A claim and its evaluation.
#[derive(Clone, Debug, PartialEq)]
pub struct EvaluatedClaim {
    /// Short name.
    pub id: String,
    /// Statement of the claim.
    pub text: String,
    /// Place in the paper.
    pub place: Option<String>,
    /// Kind of the claim, as written in a spec.
    pub kind: &'static str,
    /// Unit of the findings.
    pub unit: String,
    /// Unit in which findings are displayed.
    pub shown: String,
    /// Factor by which values in `unit` are divided for display.
    pub divisor: f64,
    /// Findings at all points.
    pub findings: Vec<Finding>,
    /// Overall verdict.
    pub verdict: Verdict,
}

/// Finding at one point: a value that is positive if the claim holds; for claims of kind `equal`, a
/// value near 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Names of the sweeps that the claim does not fix, joined by commas.
    pub x_name: String,
    /// Values of these sweeps.
    pub x: String,
    /// Mean over the replications.
    pub value: f64,
    /// 95 % interval of the mean; `None` with too few replications.
    pub interval: Option<Interval>,
    /// Number of replications that contribute.
    pub replications: usize,
    /// Verdict at this point.
    pub verdict: Verdict,
}

impl EvaluatedClaim {
    /// Evaluates a claim with the results of finished runs.
    pub fn make(claim: &Claim, results: &Results) -> EvaluatedClaim {
        let court = ClaimEvaluation { claim, results };
        let (samples, unit) = court.samples();
        let count = samples.len();
        let finding = |(point, samples): (Point, Samples)| court.finding(&point, &samples, count);
        let findings: Vec<Finding> = samples.into_iter().map(finding).collect();
        let (shown, divisor) = unit::of_differences(
            &unit,
            claim.unit.as_deref(),
            findings.iter().map(|it| it.value),
        );
        EvaluatedClaim {
            shown,
            divisor,
            id: claim.id.clone(),
            text: claim.text.clone(),
            place: claim.published.clone(),
            kind: claim.kind.name(),
            unit,
            verdict: altogether(&findings),
            findings,
        }
    }

    /// The reason for the overall verdict in a few words.
    pub fn short(&self) -> String {
        let held = self
            .findings
            .iter()
            .filter(|it| it.verdict == Verdict::Reproduced);
        match self.findings.as_slice() {
            [] => "not measured in this run".to_owned(),
            [one] => self.number(one),
            all => format!("at {} of {} points", held.count(), all.len()),
        }
    }

    /// The reason for the overall verdict as a sentence.
    pub fn reason(&self) -> String {
        let total = self.findings.len();
        if total == 0 {
            return "not measured in this run".to_owned();
        }
        let at = |verdict: Verdict| {
            let here = self.findings.iter().filter(move |it| it.verdict == verdict);
            here.map(Finding::at).collect::<Vec<_>>()
        };
        let held = at(Verdict::Reproduced).len();
        let mut text = match total {
            1 => self.number(&self.findings[0]),
            _ => format!("holds at {held} of {total} points"),
        };
        for (verdict, words) in [
            (Verdict::Differs, "the contrary"),
            (Verdict::Compatible, "undecided"),
            (Verdict::NotAttempted, "too few replications"),
        ] {
            let places = at(verdict);
            if places.is_empty() {
                continue;
            }
            let named: Vec<&str> = places.iter().map(String::as_str).take(3).collect();
            let named = match (total, places.len()) {
                (1, _) => String::new(),
                (_, 1..=3) => format!(" at {}", named.join("; ")),
                (_, all) => format!(" at {all}, such as {}", named[0]),
            };
            text.push_str(&format!("; {words}{named}"));
        }
        text
    }
}

impl EvaluatedClaim {
    /// Formats the value and interval of a finding.
    pub fn number(&self, finding: &Finding) -> String {
        let shown = |value: f64, significant| digits(value / self.divisor, significant);
        let unit = match self.shown.contains(" per ") {
            true => String::new(),
            false => unit_suffix(&self.shown),
        };
        match finding.interval {
            Some(it) if it.low < it.high => format!(
                "{}{unit} ({} to {})",
                shown(finding.value, 3),
                shown(it.low, 3),
                shown(it.high, 3)
            ),
            _ => format!("{}{unit}", shown(finding.value, 4)),
        }
    }
}

impl Finding {
    /// Formats the point of a finding.
    pub fn at(&self) -> String {
        unit::coordinates(&self.x_name, &self.x)
    }
}

/// Overall verdict. A claim is refuted if the opposite holds at any point, and confirmed only if it
/// holds at every point.
fn altogether(findings: &[Finding]) -> Verdict {
    let any = |verdict| findings.iter().any(|it| it.verdict == verdict);
    match () {
        () if findings.is_empty() => Verdict::NotAttempted,
        () if any(Verdict::Differs) => Verdict::Differs,
        () if any(Verdict::NotAttempted) => Verdict::NotAttempted,
        () if any(Verdict::Compatible) => Verdict::Compatible,
        () => Verdict::Reproduced,
    }
}

/// Values of a measure, each with the number of its replication.
type Runs = Vec<(u32, f64)>;

/// Values at a point for one side of the claim (`of` or `reference`).
struct SelectedRuns<'a> {
    point: &'a Point,
    /// The point, without the sweeps that have only one value.
    rest: Point,
    runs: Runs,
}

/// Samples at one point, each with one value per replication. The claim requires that the means of
/// all samples are positive; for kind `never-best`, that one of them is. For kind `equal`, the mean
/// of the only sample must be near 0, relative to `scale`, the mean of the reference.
struct Samples {
    all: Vec<Vec<f64>>,
    scale: f64,
}

impl Samples {
    fn one(sample: Vec<f64>) -> Samples {
        Samples {
            all: vec![sample],
            scale: 0.0,
        }
    }
}

/// A claim with the results with which it is evaluated.
struct ClaimEvaluation<'a> {
    claim: &'a Claim,
    results: &'a Results,
}

impl<'a> ClaimEvaluation<'a> {
    /// Samples at each point, and their unit.
    fn samples(&self) -> (Vec<(Point, Samples)>, String) {
        let along = self.claim.along.as_deref().unwrap_or_default();
        let of = &self.claim.of;
        match self.claim.kind {
            ClaimKind::NeverBest => self.rivals(),
            ClaimKind::Greater | ClaimKind::Equal => self.differences(),
            ClaimKind::Rises | ClaimKind::Falls => {
                let (points, unit) = match self.claim.reference {
                    Some(_) => self.paired(),
                    None => self.select(of, &of.at_point),
                };
                let sign = if self.claim.kind == ClaimKind::Rises {
                    1.0
                } else {
                    -1.0
                };
                let slope = |runs: &[(f64, Runs)]| Samples::one(slope::slopes(runs, sign));
                let lines = slope::lines(points, along).into_iter();
                let slopes = lines.map(|(point, runs)| (point, slope(&runs)));
                (
                    slopes.collect(),
                    format!("{unit} per {}", unit::readable(along)),
                )
            }
            ClaimKind::Crosses => {
                let (points, unit) = self.paired();
                let ends = |runs: &[(f64, Runs)]| {
                    let (first, last) = (runs.first(), runs.last());
                    let first = first.map_or(Vec::new(), |(_, runs)| alone(runs));
                    let last = last.map_or(Vec::new(), |(_, runs)| alone(runs));
                    let last = last.iter().map(|value| -value).collect();
                    Samples {
                        all: vec![first, last],
                        scale: 0.0,
                    }
                };
                let lines = slope::lines(points, along).into_iter();
                (
                    lines.map(|(point, runs)| (point, ends(&runs))).collect(),
                    unit,
                )
            }
        }
    }

    /// Samples of `of` minus `reference` at each point.
    fn differences(&self) -> (Vec<(Point, Samples)>, String) {
        let (points, unit) = self.paired();
        let (scales, bounds) = (self.than().0, self.bounds());
        let sample = |(point, runs): (Point, Runs)| {
            let bound = bounds.iter().find(|(other, _)| same_point(other, &point));
            let scale = match bound {
                Some((_, value)) => *value,
                None => {
                    let than = scales.iter().find(|(other, _)| same_point(other, &point));
                    let than = than.and_then(|(_, runs)| Summary::of(&alone(runs)));
                    than.map_or(0.0, |than| than.mean)
                }
            };
            let all = vec![alone(&runs)];
            (point, Samples { all, scale })
        };
        (points.into_iter().map(sample).collect(), unit)
    }

    /// The reference of the claim, if it is a value and not a measure.
    fn bound(&self) -> Option<&'a Bound> {
        self.claim.reference.as_ref()?.value.as_ref()
    }

    /// The reference value at each point. Points at which it cannot be computed are omitted.
    fn bounds(&self) -> Vec<(Point, f64)> {
        let Some(bound) = self.bound() else {
            return Vec::new();
        };
        let of = &self.claim.of;
        let (points, unit) = self.selected(of, &of.at_point);
        let spec = &self.results.spec;
        let experiment = experiment_behind(spec, self.experiment(of));
        let value = |it: &SelectedRuns<'_>| {
            Some((
                it.rest.clone(),
                bound.at(spec, experiment, it.point, &unit).ok()?,
            ))
        };
        points.iter().filter_map(value).collect()
    }

    fn than(&self) -> (Vec<(Point, Runs)>, String) {
        let than = self.claim.reference.as_ref();
        let measured = than.filter(|than| than.value.is_none());
        measured.map_or((Vec::new(), String::new()), |than| {
            self.select(than, &than.at_point)
        })
    }

    /// The values of `of` minus those of `reference`, paired by replication.
    fn paired(&self) -> (Vec<(Point, Runs)>, String) {
        let (mut of, unit) = self.select(&self.claim.of, &self.claim.of.at_point);
        let than = self.than().0;
        match self.bound() {
            Some(_) => {
                let bounds = self.bounds();
                of.retain_mut(|(point, runs)| {
                    let bound = bounds.iter().find(|(other, _)| same_point(other, point));
                    bound.is_some_and(|(_, value)| {
                        runs.iter_mut().for_each(|(_, run)| *run -= value);
                        true
                    })
                });
            }
            None => of.retain_mut(|(point, runs)| {
                let other = than.iter().find(|(other, _)| same_point(other, point));
                other.is_some_and(|(_, other)| {
                    *runs = paired_differences(runs, other);
                    true
                })
            }),
        }
        (of, unit)
    }

    /// For each other x of the sweeps that `of` fixes: the difference between the measure at this x
    /// and the measure of `of`. The sign is reversed if the smallest value is the best.
    fn rivals(&self) -> (Vec<(Point, Samples)>, String) {
        let of = &self.claim.of;
        let (own, unit) = self.select(of, &of.at_point);
        let (all, _) = self.select(of, &BTreeMap::new());
        let sign = if self.claim.best == Best::Greatest {
            1.0
        } else {
            -1.0
        };
        let rest = |point: &Point| -> Point {
            let kept = point
                .iter()
                .filter(|(name, _)| !of.at_point.contains_key(name));
            kept.cloned().collect()
        };
        let lies = |point: &Point| {
            let fixed = |(name, x): &(String, SweepValue)| {
                of.at_point.get(name).is_none_or(|it| same(it, x))
            };
            point.iter().all(fixed)
        };
        let against = |(point, runs): (Point, Runs)| {
            let others = all
                .iter()
                .filter(|(other, _)| !lies(other) && same_point(&rest(other), &point));
            let more = others.map(|(_, other)| {
                let more = paired_differences(other, &runs).into_iter();
                more.map(|(_, more)| sign * more).collect()
            });
            let all = more.collect();
            (point, Samples { all, scale: 0.0 })
        };
        (own.into_iter().map(against).collect(), unit)
    }

    /// Values of one side of the comparison at its points, and their unit. The points omit sweeps
    /// that have only one value.
    fn select(
        &self,
        side: &'a ClaimSide,
        fixed: &BTreeMap<String, SweepValue>,
    ) -> (Vec<(Point, Runs)>, String) {
        let (found, unit) = self.selected(side, fixed);
        let found = found.into_iter().map(|it| (it.rest, it.runs));
        (found.collect(), unit)
    }

    /// Like [`Self::select`], but with complete points.
    fn selected(
        &self,
        side: &'a ClaimSide,
        fixed: &BTreeMap<String, SweepValue>,
    ) -> (Vec<SelectedRuns<'a>>, String) {
        let claim = self.claim;
        let experiment = self.experiment(side);
        let series = side.series.as_ref().or(claim.series.as_ref());
        let series = series.map_or("all", String::as_str);
        let metric = side.metric.as_ref().or(claim.metric.as_ref());
        let metric = metric.map_or("", String::as_str);
        let mut unit = String::new();
        let mut found = Vec::new();
        for (point, records) in by_point(self.results, experiment) {
            let wanted = |(name, x): &(String, SweepValue)| match fixed.get(name) {
                Some(wanted) => same(wanted, x),
                None => claim
                    .at_point
                    .get(name)
                    .is_none_or(|wanted| wanted.all().iter().any(|wanted| same(wanted, x))),
            };
            // A sweep that only the other side of the comparison fixes remains part of the point.
            let has_all = fixed
                .keys()
                .all(|name| point.iter().any(|(it, _)| it == name));
            if !has_all || !point.iter().all(wanted) {
                continue;
            }
            let open = |name: &String| match claim.at_point.get(name) {
                Some(Values::One(_)) => false,
                Some(Values::Several(_)) | None => !fixed.contains_key(name),
            };
            let rest = point
                .iter()
                .filter(|(name, _)| open(name))
                .cloned()
                .collect();
            let (runs, own) = in_unit(values(&records, series, metric), None);
            if !runs.is_empty() {
                unit = own;
                found.push(SelectedRuns { point, rest, runs });
            }
        }
        (found, unit)
    }

    fn experiment(&self, side: &'a ClaimSide) -> &'a str {
        let named = side.experiment.as_ref().or(self.claim.experiment.as_ref());
        let first = || self.results.spec.experiments.first();
        named.map_or_else(|| first().map_or("main", |it| &it.id), String::as_str)
    }

    /// Whether the experiment requests a single run, because nothing in it is random.
    fn is_certain(&self) -> bool {
        let runs = |side: &'a ClaimSide| source_runs(&self.results.spec, self.experiment(side));
        let than = self
            .claim
            .reference
            .iter()
            .filter(|than| than.value.is_none());
        std::iter::once(&self.claim.of)
            .chain(than)
            .all(|side| runs(side) == Some(1))
    }

    /// The finding at a point; `points` is the total number of points.
    fn finding(&self, point: &Point, samples: &Samples, points: usize) -> Finding {
        let (x_name, x) = axis(point);
        let decided = samples
            .all
            .iter()
            .map(|sample| self.decide(sample, samples, points));
        // If all samples must be positive, the weakest one decides; if one suffices, the strongest.
        let order = |it: &Option<SampleVerdict>| {
            let it = it.as_ref();
            it.map_or((0, f64::INFINITY), |it| (rank(it.verdict), it.value))
        };
        let least = |a: &Option<SampleVerdict>, b: &Option<SampleVerdict>| {
            let ((a, x), (b, y)) = (order(a), order(b));
            a.cmp(&b).then(x.total_cmp(&y))
        };
        let one = match self.claim.kind {
            ClaimKind::NeverBest => decided.max_by(least),
            _ => decided.min_by(least),
        };
        let replications = samples.all.first().map_or(0, Vec::len);
        let (value, interval, verdict) = match one.flatten() {
            Some(it) => (it.value, Some(it.interval), it.verdict),
            None => {
                let all = samples.all.first().and_then(|all| Summary::of(all));
                (all.map_or(0.0, |it| it.mean), None, Verdict::NotAttempted)
            }
        };
        Finding {
            x_name,
            x,
            value,
            interval,
            replications,
            verdict,
        }
    }

    /// Verdict on one sample. Because many points are tested, the opposite of a claim is stated
    /// only with an error probability that is divided by their number.
    fn decide(&self, sample: &[f64], samples: &Samples, points: usize) -> Option<SampleVerdict> {
        let summary = Summary::of(sample)?;
        if summary.replications < MIN_REPLICATIONS && !self.is_certain() {
            return None;
        }
        let questions = (points * samples.all.len()) as f64;
        let within = |confidence| {
            let half = summary.confidence_at(confidence).unwrap_or(0.0);
            Interval::around(summary.mean, half)
        };
        let (held, sure) = match self.claim.kind {
            // The interval of each sample is wider, because one of several samples suffices.
            ClaimKind::NeverBest => (
                1.0 - (1.0 - CONFIDENCE) / samples.all.len() as f64,
                CONFIDENCE,
            ),
            _ => (CONFIDENCE, CONFIDENCE),
        };
        let (held, sure) = (within(held), within(1.0 - (1.0 - sure) / questions));
        let (holds, contrary) = match self.claim.within {
            Some(share) => {
                let margin = share * samples.scale.abs();
                let near = Interval::around(0.0, margin);
                let inside = near.contains(held.low) && near.contains(held.high);
                (inside, !near.overlaps(sure))
            }
            None => (held.low > 0.0, sure.high < 0.0),
        };
        let verdict = match (holds, contrary) {
            (true, _) => Verdict::Reproduced,
            (false, true) => Verdict::Differs,
            (false, false) => Verdict::Compatible,
        };
        Some(SampleVerdict {
            value: summary.mean,
            interval: within(CONFIDENCE),
            verdict,
        })
    }
}

/// Verdict on one sample, with its interval.
struct SampleVerdict {
    value: f64,
    interval: Interval,
    verdict: Verdict,
}

/// Rank of a verdict, from worst to best.
fn rank(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::NotAttempted => 0,
        Verdict::Differs => 1,
        Verdict::Compatible => 2,
        Verdict::Reproduced => 3,
    }
}

/// Number of replications requested by the experiment with this id.
fn source_runs(spec: &Spec, id: &str) -> Option<u32> {
    experiment_behind(spec, id).map(|run| run.replications)
}

/// The experiment with this id that is run; for a derived experiment, its source.
fn experiment_behind<'a>(spec: &'a Spec, id: &str) -> Option<&'a Experiment> {
    let run = spec.experiments.iter().find(|it| it.id == id);
    let derived = || spec.derived.iter().find(|it| it.id() == id);
    // The recursion ends because a derived experiment must be declared after its source.
    run.or_else(|| experiment_behind(spec, derived()?.experiment()))
}

fn same_point(a: &Point, b: &Point) -> bool {
    let equal =
        |(a, b): (&(String, SweepValue), &(String, SweepValue))| a.0 == b.0 && same(&a.1, &b.1);
    a.len() == b.len() && a.iter().zip(b).all(equal)
}
