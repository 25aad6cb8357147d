//! Tables: measures summarized over replications, compared with published values and with means of
//! independent programs.

use std::collections::BTreeMap;

use anabranch_scenario::Spec;
use anabranch_scenario::output::{BesideSource, Row, TableKind, TableOutput as TableSpec};
use anabranch_scenario::records::SeriesError;
use anabranch_scenario::records::{Results, RunRecord};
use anabranch_scenario::unit::{divisor, factor};
use anabranch_scenario::value::{Point, SweepValue};

use crate::compare::{self, BaselineComparison, Judgement, Rule, digits};
use crate::reference::{Published, Reference};
use crate::statistics::{Summary, paired_differences};

mod csv_files;
mod mismatch;
mod single_run;

/// Columns of `tables/<id>.csv`. `band_low` and `band_high` limit the values that count as
/// agreeing; `rank` is the rank of the printed value among the runs, counted from 1.
pub const COLUMNS: [&str; 13] = [
    "series",
    "x_name",
    "x",
    "metric",
    "value",
    "ci95",
    "replications",
    "unit",
    "published",
    "verdict",
    "band_low",
    "band_high",
    "rank",
];

/// Columns of `tables/<id>-<baseline>.csv`; `*` is replaced by the name of the independent program.
pub const BASELINE_COLUMNS: [&str; 14] = [
    "series",
    "x_name",
    "x",
    "metric",
    "value",
    "ci95",
    "replications",
    "unit",
    "*",
    "*_ci95",
    "*_replications",
    "overlap",
    "difference",
    "relative_difference",
];

/// A finished table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Short name.
    pub id: String,
    /// Title.
    pub title: String,
    /// Place in the paper.
    pub place: Option<String>,
    /// Id of the experiment whose results the table shows.
    pub experiment: String,
    /// Note below the table.
    pub note: Option<String>,
    /// Lines, ordered by row of the spec, then by x.
    pub lines: Vec<TableLine>,
}

/// A line of a table: one quantity at one x.
#[derive(Clone, Debug, PartialEq)]
pub struct TableLine {
    /// Subject of the line, such as `sctp over tcp`.
    pub series: String,
    /// Name of the independent variable; empty if there is none.
    pub x_name: String,
    /// Value of the independent variable.
    pub x: String,
    /// The metric.
    pub metric: String,
    /// Summary of the measured quantity over the replications; `None` if it was not measured.
    pub measured: Option<Summary>,
    /// Value in each replication.
    pub runs: Vec<f64>,
    /// Unit of all numbers in the line.
    pub unit: String,
    /// Published value.
    pub published: Option<Published>,
    /// Verdict of the comparison with the published value, if there is one.
    pub judgement: Option<Judgement>,
    /// Comparisons with the means of independent programs.
    pub comparisons: Vec<BaselineComparison>,
}

impl Table {
    /// Makes a table from finished runs.
    ///
    /// # Errors
    /// A series file cannot be read.
    pub fn make(
        spec: &TableSpec,
        results: &Results,
        reference: &Reference,
    ) -> Result<Table, SeriesError> {
        let maker = Maker {
            spec,
            results,
            reference,
            experiment: experiment_of(spec, &results.spec),
        };
        let lines = match spec.kind {
            TableKind::Metrics => maker.metrics(),
            TableKind::Difference => maker.difference(),
            TableKind::Steps => maker.steps()?,
            TableKind::Events => maker.events()?,
        };
        Ok(Table {
            id: spec.id.clone(),
            title: spec.title.clone(),
            place: spec.published.clone(),
            experiment: maker.experiment.to_owned(),
            note: spec.note.clone(),
            lines,
        })
    }

    /// Names of the independent programs that have a mean in at least one line.
    pub fn baselines(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for comparison in self.lines.iter().flat_map(|line| &line.comparisons) {
            if !names.contains(&comparison.baseline.as_str()) {
                names.push(&comparison.baseline);
            }
        }
        names
    }
}

fn optional(number: Option<f64>) -> String {
    number.map_or(String::new(), |number| digits(number, 6))
}

impl TableLine {
    /// A line for the values of some runs, without comparisons.
    fn new(
        series: &str,
        (x_name, x): (String, String),
        metric: &str,
        unit: &str,
        runs: Vec<f64>,
    ) -> TableLine {
        TableLine {
            series: series.to_owned(),
            x_name,
            x,
            metric: metric.to_owned(),
            measured: Summary::of(&runs),
            runs,
            unit: unit.to_owned(),
            published: None,
            judgement: None,
            comparisons: Vec::new(),
        }
    }

    /// Adds the published value, if there is one, and its verdict. A line without runs gets the
    /// unit of the published value.
    fn judged(mut self, published: Option<Published>, rule: Rule) -> TableLine {
        if let Some(printed) = &published {
            self.judgement = Some(compare::judge_in(&self.runs, &self.unit, printed, rule));
            if self.runs.is_empty() {
                self.unit.clone_from(&printed.unit);
            }
        }
        self.published = published;
        self
    }

    /// Comparison with the mean of an independent program.
    pub fn comparison(&self, baseline: &str) -> Option<&BaselineComparison> {
        self.comparisons.iter().find(|it| it.baseline == baseline)
    }

    /// Mean, half width of the 95 % interval and number of replications, as written to a file.
    fn numbers(&self) -> [String; 3] {
        let measured = self.measured.as_ref();
        [
            optional(measured.map(|m| m.mean)),
            optional(measured.and_then(Summary::confidence)),
            measured.map_or(String::new(), |m| m.replications.to_string()),
        ]
    }
}

/// Formats a mean and its interval: the half width with two significant digits, and the mean with
/// the same precision.
pub fn readable(mean: f64, half_width: Option<f64>) -> (String, Option<String>) {
    match half_width.filter(|half| *half > 0.0) {
        None => (digits(mean, 5), half_width.map(|_| "0".to_owned())),
        Some(half) => {
            let half_text = compare::two_digits(half);
            let decimals = half_text
                .split_once('.')
                .map_or(0, |(_, decimals)| decimals.len());
            (format!("{mean:.decimals$}"), Some(half_text))
        }
    }
}

/// The experiment of a table: the one that the table names, or the one with the table's id, or the
/// first.
fn experiment_of<'a>(table: &'a TableSpec, spec: &'a Spec) -> &'a str {
    named_or_own(table.experiment.as_deref(), &table.id, spec)
}

/// The experiment with the id `named`, or with the id `own`, or the first in the file.
pub(super) fn named_or_own<'a>(named: Option<&'a str>, own: &'a str, spec: &'a Spec) -> &'a str {
    let exists = |id: &str| {
        let run = spec
            .experiments
            .iter()
            .any(|experiment| experiment.id == id);
        run || spec.derived.iter().any(|derived| derived.id() == id)
    };
    match named {
        Some(name) => name,
        None if exists(own) => own,
        None => spec.experiments.first().map_or("main", |first| &first.id),
    }
}

/// The point without the sweeps in `fixed`; `None` if the point does not have these values.
pub(super) fn within(point: &Point, fixed: &BTreeMap<String, SweepValue>) -> Option<Point> {
    let lies = |(name, wanted): (&String, &SweepValue)| {
        let found = point.iter().find(|(other, _)| other == name);
        found.is_some_and(|(_, x)| same_x(&x.to_string(), &wanted.to_string()))
    };
    let rest = || {
        point
            .iter()
            .filter(|(name, _)| !fixed.contains_key(name))
            .cloned()
            .collect()
    };
    fixed.iter().all(lies).then(rest)
}

/// Union of two sets of fixed sweeps, in which the inner set takes precedence.
pub(super) fn joined(
    outer: &BTreeMap<String, SweepValue>,
    inner: &BTreeMap<String, SweepValue>,
) -> BTreeMap<String, SweepValue> {
    outer
        .iter()
        .chain(inner)
        .map(|(name, x)| (name.clone(), x.clone()))
        .collect()
}

/// Name and value of a point on the x axis. If the point has several sweeps, their names are joined
/// by commas, and so are their values.
pub(super) fn axis(point: &Point) -> (String, String) {
    let join = |texts: Vec<String>| texts.join(", ");
    (
        join(point.iter().map(|(name, _)| name.clone()).collect()),
        join(point.iter().map(|(_, value)| value.to_string()).collect()),
    )
}

/// Whether two x values are equal: as numbers if both are numbers, and as text otherwise.
pub(super) fn same_x(left: &str, right: &str) -> bool {
    match (left.parse::<f64>(), right.parse::<f64>()) {
        (Ok(left), Ok(right)) => left == right,
        _ => left == right,
    }
}

/// Records of an experiment by point, in order of appearance.
pub(super) fn by_point<'a>(
    results: &'a Results,
    experiment: &'a str,
) -> Vec<(&'a Point, Vec<&'a RunRecord>)> {
    let mut points: Vec<(&Point, Vec<&RunRecord>)> = Vec::new();
    // The records of a point are usually consecutive.
    let mut last = 0;
    for record in results.experiment(experiment) {
        let is_of = |it: &(&Point, Vec<&RunRecord>)| *it.0 == record.point;
        if !points.get(last).is_some_and(is_of) {
            last = points.iter().position(is_of).unwrap_or(points.len());
        }
        match points.get_mut(last) {
            Some((_, records)) => records.push(record),
            None => points.push((&record.point, vec![record])),
        }
    }
    points
}

/// Values of a measure as `(replication, value)`, and its unit.
pub(super) fn values(
    records: &[&RunRecord],
    series: &str,
    metric: &str,
) -> (Vec<(u32, f64)>, String) {
    let mut unit = String::new();
    let mut found = Vec::with_capacity(records.len());
    for record in records {
        if let Some(measure) = record
            .metrics
            .iter()
            .find(|m| m.series == series && m.metric == metric)
        {
            unit.clone_from(&measure.unit);
            found.push((record.replication, measure.value));
        }
    }
    (found, unit)
}

/// Converts values to the unit that a row or curve requests, if any; if the conversion is
/// impossible, they keep their unit.
pub(super) fn in_unit(
    (mut values, own): (Vec<(u32, f64)>, String),
    wanted: Option<&str>,
) -> (Vec<(u32, f64)>, String) {
    let Some((wanted, divisor)) = wanted.and_then(|it| Some((it, divisor(&own, it)?))) else {
        return (values, own);
    };
    values.iter_mut().for_each(|(_, value)| *value /= divisor);
    (values, wanted.to_owned())
}

/// The values without their replications.
pub(super) fn alone(values: &[(u32, f64)]) -> Vec<f64> {
    values.iter().map(|(_, value)| *value).collect()
}

/// Inputs from which a table of any kind is made.
struct Maker<'a> {
    spec: &'a TableSpec,
    results: &'a Results,
    reference: &'a Reference,
    experiment: &'a str,
}

impl<'a> Maker<'a> {
    /// Place in the paper whose published values apply.
    fn place(&self) -> &'a str {
        self.spec.published.as_deref().unwrap_or(&self.spec.id)
    }

    /// Published values of a row.
    fn printed(&self, series: &'a str, metric: &'a str) -> impl Iterator<Item = &'a Published> {
        let here = self.reference.published(self.place());
        here.filter(move |printed| printed.series == series && printed.metric == metric)
    }

    fn wants(&self, x: &str) -> bool {
        self.spec
            .at
            .as_ref()
            .is_none_or(|wanted| wanted.iter().any(|value| same_x(&value.to_string(), x)))
    }

    /// Name and value of x for a row: those that the row specifies, or those of the point.
    fn axis(&self, row: &Row, point: &Point) -> (String, String) {
        let (name, x) = axis(point);
        (
            row.x_name.clone().unwrap_or(name),
            row.x.as_ref().map_or(x, SweepValue::to_string),
        )
    }

    /// Points of a row with their records. The points omit the sweeps that the row fixes.
    fn points(&self, experiment: &'a str, row: &Row) -> Vec<(Point, Vec<&'a RunRecord>)> {
        let fixed = joined(&self.spec.at_point, &row.at_point);
        let points = by_point(self.results, experiment).into_iter();
        points
            .filter_map(|(point, records)| Some((within(point, &fixed)?, records)))
            .filter(|(point, _)| self.wants(&axis(point).1))
            .collect()
    }

    /// Comparisons of a row with independent programs at a point. If the row has several steps,
    /// `index` is the number of the step.
    fn comparisons(
        &self,
        row: &Row,
        index: usize,
        point: &Point,
        line: &TableLine,
    ) -> Vec<BaselineComparison> {
        let of = |(name, source): (&String, &BesideSource)| {
            let baseline = self.reference.baseline(name)?;
            let metric = row.baseline.get(name)?.get(index)?;
            let place = source.place.as_deref().unwrap_or(self.place());
            let whole = source.condition.replace("{x}", &axis(point).1);
            let named = point
                .iter()
                .map(|(name, x)| (format!("{{{name}}}"), x.to_string()));
            let condition = named.fold(whole, |text, (name, x)| text.replace(&name, &x));
            let mean = baseline.mean(place, &condition, metric)?;
            let divisor = match mean.unit.is_empty() {
                true => 1.0,
                false => factor(&line.unit, &mean.unit)?,
            };
            let mean = mean.divided_by(divisor);
            Some(compare::with_baseline(line.measured.as_ref(), name, &mean))
        };
        self.spec.baseline.iter().filter_map(of).collect()
    }

    fn metrics(&self) -> Vec<TableLine> {
        let mut lines = Vec::new();
        for row in &self.spec.rows {
            let points = self.points(self.experiment, row);
            let (series, metric) = names(row);
            let printed_as = row.printed.as_deref().unwrap_or(series);
            let mut printed: Vec<&Published> = self.printed(printed_as, metric).collect();
            for (point, records) in &points {
                let (x_name, x) = self.axis(row, point);
                let (values, unit) = in_unit(values(records, series, metric), row.unit.as_deref());
                let place = printed
                    .iter()
                    .position(|printed| mismatch::is_at(printed, &x_name, &x));
                let published = place.map(|place| printed.remove(place)).cloned();
                if values.is_empty() && published.is_none() {
                    continue;
                }
                let point = records.first().map_or(Point::new(), |it| it.point.clone());
                let name = row.label.as_deref().unwrap_or(series);
                let rule = match row.near_bound {
                    true => Rule::Quantiles,
                    false => Rule::OneMoreRun,
                };
                let runs = alone(&values);
                let line = TableLine::new(name, (x_name, x), metric, &unit, runs);
                let comparisons = self.comparisons(row, 0, &point, &line);
                lines.push(TableLine {
                    comparisons,
                    ..line.judged(published, rule)
                });
            }
            let axes: Vec<(String, String)> = points
                .iter()
                .map(|(point, _)| self.axis(row, point))
                .collect();
            let left = printed.into_iter();
            lines.extend(
                left.filter(|printed| self.wants_printed(row, printed))
                    .map(|printed| match mismatch::reason(printed, &axes) {
                        Some(reason) => TableLine {
                            judgement: Some(Judgement::mismatched(reason)),
                            ..not_measured(printed)
                        },
                        None => not_measured(printed),
                    }),
            );
        }
        lines
    }

    /// Whether a published value without a measured one belongs to the row.
    fn wants_printed(&self, row: &Row, printed: &Published) -> bool {
        row.x
            .as_ref()
            .is_some_and(|x| same_x(&x.to_string(), &printed.x))
            || row.x.is_none() && self.wants(&printed.x)
    }

    fn difference(&self) -> Vec<TableLine> {
        let less = self.spec.subtract.as_deref().unwrap_or(self.experiment);
        let names_of = match &self.spec.names {
            Some([later, earlier]) => [later.as_str(), earlier.as_str()],
            None => [self.experiment, less],
        };
        let mut lines = Vec::new();
        for row in &self.spec.rows {
            let (points, base) = (self.points(self.experiment, row), self.points(less, row));
            let (series, metric) = names(row);
            let at_points = points.iter().map(|(point, records)| {
                let shown = |records: &[&RunRecord]| {
                    in_unit(values(records, series, metric), row.unit.as_deref())
                };
                let (later, unit) = shown(records);
                let earlier = base.iter().find(|(other, _)| other == point);
                let earlier = earlier.map_or(Vec::new(), |(_, records)| shown(records).0);
                (self.axis(row, point), later, earlier, unit)
            });
            let at_points: Vec<_> = at_points.collect();
            let [a, b] = names_of;
            for (name, side) in [
                (a.to_owned(), Side::Later),
                (b.to_owned(), Side::Earlier),
                (format!("{a} - {b}"), Side::Both),
            ] {
                let label = row.label.as_deref().unwrap_or(series);
                let line = |(axis, later, earlier, unit): &(_, Vec<_>, Vec<_>, String)| {
                    let runs = match side {
                        Side::Later => alone(later),
                        Side::Earlier => alone(earlier),
                        Side::Both => alone(&paired_differences(later, earlier)),
                    };
                    let axis: &(String, String) = axis;
                    let name = format!("{label} ({name})");
                    TableLine::new(&name, axis.clone(), metric, unit, runs)
                };
                lines.extend(at_points.iter().map(line));
            }
        }
        lines
    }
}

/// The side of a difference that a line shows.
#[derive(Clone, Copy)]
enum Side {
    Later,
    Earlier,
    Both,
}

/// Series and metric of a row of measures.
fn names(row: &Row) -> (&str, &str) {
    (
        row.series.as_deref().unwrap_or("all"),
        row.metric.as_deref().unwrap_or_default(),
    )
}

/// A line for a published value without a measured one.
fn not_measured(printed: &Published) -> TableLine {
    let axis = (printed.x_name.clone(), printed.x.clone());
    let line = TableLine::new(
        &printed.series,
        axis,
        &printed.metric,
        &printed.unit,
        Vec::new(),
    );
    line.judged(Some(printed.clone()), Rule::OneMoreRun)
}
