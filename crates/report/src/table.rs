//! Tables: measures condensed over replications, with what was published and what independent programs give beside them.

use std::collections::BTreeMap;
use std::io;

use anabranch_scenario::Spec;
use anabranch_scenario::output::{BesideSource, Row, Table as TableSpec, TableKind};
use anabranch_scenario::records::SeriesError;
use anabranch_scenario::records::{Results, RunRecord};
use anabranch_scenario::unit::{divisor, factor};
use anabranch_scenario::value::{Point, Value};

use crate::compare::{self, Beside, Judgement, Rule, digits};
use crate::reference::{Published, Reference};
use crate::statistics::{Rank, Summary, paired_differences};

mod astray;
mod single_run;

/// The columns of `tables/<id>.csv`. `band_low` and `band_high` are where a value counts as one of ours; `rank` is the place of the
/// printed value among the runs and itself, counted from 1.
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

/// The columns of `tables/<id>-<yardstick>.csv`; `*` stands for the yardstick's name.
pub const BESIDE_COLUMNS: [&str; 14] = [
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
    /// Its short name.
    pub id: String,
    /// Head line.
    pub title: String,
    /// Where the paper printed it.
    pub place: Option<String>,
    /// The experiment it is made of.
    pub experiment: String,
    /// A remark.
    pub note: Option<String>,
    /// Its lines, ordered by row of the spec, then by x.
    pub lines: Vec<Line>,
}

/// A line of a table: one quantity at one x.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// What it is about: `sctp over tcp`.
    pub series: String,
    /// Name of the independent variable; empty where there is none.
    pub x_name: String,
    /// Its value.
    pub x: String,
    /// The metric.
    pub metric: String,
    /// The measured quantity over the replications; `None` where it was not measured.
    pub measured: Option<Summary>,
    /// Its value in each of them.
    pub runs: Vec<f64>,
    /// The unit of all its numbers.
    pub unit: String,
    /// What was printed.
    pub published: Option<Published>,
    /// Whether the two agree; `None` where nothing was printed.
    pub judgement: Option<Judgement>,
    /// Means of independent programs beside ours.
    pub beside: Vec<Beside>,
}

impl Table {
    /// Makes a table of finished runs.
    ///
    /// # Errors
    /// A series file that cannot be read.
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

    /// The independent programs of which a mean stands beside any line.
    pub fn yardsticks(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for beside in self.lines.iter().flat_map(|line| &line.beside) {
            if !names.contains(&beside.yardstick.as_str()) {
                names.push(&beside.yardstick);
            }
        }
        names
    }

    /// Writes `tables/<id>.csv`: see [`COLUMNS`]. Numbers have six significant digits; a cell without a number is empty.
    ///
    /// # Errors
    /// What the writer says.
    pub fn write_csv(&self, out: impl io::Write) -> io::Result<()> {
        let mut writer = csv::Writer::from_writer(out);
        writer.write_record(COLUMNS)?;
        for line in &self.lines {
            let [value, confidence, replications] = line.numbers();
            let published = line.published.as_ref();
            let published = published.map_or(String::new(), |it| it.in_unit_of(&line.unit));
            let judgement = line.judgement.as_ref();
            let verdict = judgement.map_or("", |judgement| judgement.verdict.text());
            let band = judgement.and_then(|judgement| judgement.band);
            let rank = judgement.and_then(|judgement| judgement.rank);
            writer.write_record([
                line.series.as_str(),
                &line.x_name,
                &line.x,
                &line.metric,
                &value,
                &confidence,
                &replications,
                &line.unit,
                &published,
                verdict,
                &optional(band.map(|band| band.low)),
                &optional(band.map(|band| band.high)),
                &optional(rank.map(Rank::place)),
            ])?;
        }
        writer.flush()
    }

    /// Writes `tables/<id>-<yardstick>.csv`, the lines that have a mean of it: see [`BESIDE_COLUMNS`]. `overlap` is `yes`,
    /// `no`, or empty where either side is a single run.
    ///
    /// # Errors
    /// What the writer says.
    pub fn write_beside_csv(&self, yardstick: &str, out: impl io::Write) -> io::Result<()> {
        let mut writer = csv::Writer::from_writer(out);
        writer.write_record(BESIDE_COLUMNS.map(|column| column.replace('*', yardstick)))?;
        for line in &self.lines {
            let Some(beside) = line.beside(yardstick) else {
                continue;
            };
            let [value, confidence, replications] = line.numbers();
            writer.write_record([
                line.series.as_str(),
                &line.x_name,
                &line.x,
                &line.metric,
                &value,
                &confidence,
                &replications,
                &line.unit,
                &digits(beside.mean, 6),
                &optional(beside.confidence),
                &beside.replications.to_string(),
                beside
                    .overlap
                    .map_or("", |overlap| if overlap { "yes" } else { "no" }),
                &optional(beside.difference),
                &optional(beside.relative()),
            ])?;
        }
        writer.flush()
    }
}

fn optional(number: Option<f64>) -> String {
    number.map_or(String::new(), |number| digits(number, 6))
}

impl Line {
    /// A line about some runs, with nothing beside it.
    fn new(
        series: &str,
        (x_name, x): (String, String),
        metric: &str,
        unit: &str,
        runs: Vec<f64>,
    ) -> Line {
        Line {
            series: series.to_owned(),
            x_name,
            x,
            metric: metric.to_owned(),
            measured: Summary::of(&runs),
            runs,
            unit: unit.to_owned(),
            published: None,
            judgement: None,
            beside: Vec::new(),
        }
    }

    /// The same with what was printed, where something was. Without runs the unit is that of the print.
    fn judged(mut self, published: Option<Published>, rule: Rule) -> Line {
        if let Some(printed) = &published {
            self.judgement = Some(compare::judge_in(&self.runs, &self.unit, printed, rule));
            if self.runs.is_empty() {
                self.unit.clone_from(&printed.unit);
            }
        }
        self.published = published;
        self
    }

    /// The mean of an independent program beside ours.
    pub fn beside(&self, yardstick: &str) -> Option<&Beside> {
        self.beside.iter().find(|it| it.yardstick == yardstick)
    }

    /// Value, half width of the 95 % interval and replications, as written to a file.
    fn numbers(&self) -> [String; 3] {
        let measured = self.measured.as_ref();
        [
            optional(measured.map(|m| m.mean)),
            optional(measured.and_then(Summary::confidence)),
            measured.map_or(String::new(), |m| m.replications.to_string()),
        ]
    }
}

/// A mean and its interval for a reader: the half width with two digits, the mean as far as they reach.
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

/// The experiment a table is made of: the one it names, or that of its own id, or the first.
fn experiment_of<'a>(table: &'a TableSpec, spec: &'a Spec) -> &'a str {
    named_or_own(table.experiment.as_deref(), &table.id, spec)
}

/// The experiment that a name, or else an id, or else the order of the file says.
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

/// A point without the sweeps that `fixed` fixes; `None` where it lies elsewhere in one of them, or lacks it.
pub(super) fn within(point: &Point, fixed: &BTreeMap<String, Value>) -> Option<Point> {
    let lies = |(name, wanted): (&String, &Value)| {
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

/// What two sets of fixed sweeps fix together; the second is the nearer one and wins.
pub(super) fn joined(
    outer: &BTreeMap<String, Value>,
    inner: &BTreeMap<String, Value>,
) -> BTreeMap<String, Value> {
    outer
        .iter()
        .chain(inner)
        .map(|(name, x)| (name.clone(), x.clone()))
        .collect()
}

/// The name and the value of a point on the x axis; several sweeps are joined by commas.
pub(super) fn axis(point: &Point) -> (String, String) {
    let join = |texts: Vec<String>| texts.join(", ");
    (
        join(point.iter().map(|(name, _)| name.clone()).collect()),
        join(point.iter().map(|(_, value)| value.to_string()).collect()),
    )
}

/// Whether two x are the same: as numbers where both are, as text otherwise.
pub(super) fn same_x(left: &str, right: &str) -> bool {
    match (left.parse::<f64>(), right.parse::<f64>()) {
        (Ok(left), Ok(right)) => left == right,
        _ => left == right,
    }
}

/// The records of an experiment at each of its points, in order of appearance.
pub(super) fn by_point<'a>(
    results: &'a Results,
    experiment: &'a str,
) -> Vec<(&'a Point, Vec<&'a RunRecord>)> {
    let mut points: Vec<(&Point, Vec<&RunRecord>)> = Vec::new();
    // The records of a point nearly always follow one another.
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

/// The values of a measure in some records as `(replication, value)`, and its unit.
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

/// Values in the unit that a row or a curve asks for, where it asks for one that theirs can be turned into.
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

/// What all kinds of tables need while they are made.
struct Maker<'a> {
    spec: &'a TableSpec,
    results: &'a Results,
    reference: &'a Reference,
    experiment: &'a str,
}

impl<'a> Maker<'a> {
    /// The place under which its printed values stand.
    fn place(&self) -> &'a str {
        self.spec.published.as_deref().unwrap_or(&self.spec.id)
    }

    /// What was printed for a row.
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

    /// Name and value of x for a row: the row's own, or the point's.
    fn axis(&self, row: &Row, point: &Point) -> (String, String) {
        let (name, x) = axis(point);
        (
            row.x_name.clone().unwrap_or(name),
            row.x.as_ref().map_or(x, Value::to_string),
        )
    }

    /// The points that a row of the table wants, without the sweeps it fixes, and their records.
    fn points(&self, experiment: &'a str, row: &Row) -> Vec<(Point, Vec<&'a RunRecord>)> {
        let fixed = joined(&self.spec.at_point, &row.at_point);
        let points = by_point(self.results, experiment).into_iter();
        points
            .filter_map(|(point, records)| Some((within(point, &fixed)?, records)))
            .filter(|(point, _)| self.wants(&axis(point).1))
            .collect()
    }

    /// What independent programs give for a row at a point; `index` counts the steps of a row that has several.
    fn beside(&self, row: &Row, index: usize, point: &Point, line: &Line) -> Vec<Beside> {
        let of = |(name, source): (&String, &BesideSource)| {
            let yardstick = self.reference.yardstick(name)?;
            let metric = row.beside.get(name)?.get(index)?;
            let place = source.place.as_deref().unwrap_or(self.place());
            let whole = source.condition.replace("{x}", &axis(point).1);
            let named = point
                .iter()
                .map(|(name, x)| (format!("{{{name}}}"), x.to_string()));
            let condition = named.fold(whole, |text, (name, x)| text.replace(&name, &x));
            let mean = yardstick.mean(place, &condition, metric)?;
            let divisor = match mean.unit.is_empty() {
                true => 1.0,
                false => factor(&line.unit, &mean.unit)?,
            };
            let mean = mean.divided_by(divisor);
            Some(compare::beside(line.measured.as_ref(), name, &mean))
        };
        self.spec.beside.iter().filter_map(of).collect()
    }

    fn metrics(&self) -> Vec<Line> {
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
                    .position(|printed| astray::is_at(printed, &x_name, &x));
                let published = place.map(|place| printed.remove(place)).cloned();
                if values.is_empty() && published.is_none() {
                    continue;
                }
                let point = records.first().map_or(Point::new(), |it| it.point.clone());
                let name = row.label.as_deref().unwrap_or(series);
                let rule = match row.bounded {
                    true => Rule::Quantiles,
                    false => Rule::OneMoreRun,
                };
                let runs = alone(&values);
                let line = Line::new(name, (x_name, x), metric, &unit, runs);
                let beside = self.beside(row, 0, &point, &line);
                lines.push(Line {
                    beside,
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
                    .map(|printed| match astray::reason(printed, &axes) {
                        Some(reason) => Line {
                            judgement: Some(Judgement::astray(reason)),
                            ..not_measured(printed)
                        },
                        None => not_measured(printed),
                    }),
            );
        }
        lines
    }

    /// Whether a printed value without a measured one belongs to the row.
    fn wants_printed(&self, row: &Row, printed: &Published) -> bool {
        row.x
            .as_ref()
            .is_some_and(|x| same_x(&x.to_string(), &printed.x))
            || row.x.is_none() && self.wants(&printed.x)
    }

    fn difference(&self) -> Vec<Line> {
        let less = self.spec.less.as_deref().unwrap_or(self.experiment);
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
                    Line::new(&name, axis.clone(), metric, unit, runs)
                };
                lines.extend(at_points.iter().map(line));
            }
        }
        lines
    }
}

/// Which side of a difference a line is about.
#[derive(Clone, Copy)]
enum Side {
    Later,
    Earlier,
    Both,
}

/// Series and metric of a row about measures.
fn names(row: &Row) -> (&str, &str) {
    (
        row.series.as_deref().unwrap_or("all"),
        row.metric.as_deref().unwrap_or_default(),
    )
}

/// The line for a printed value that no run stands against.
fn not_measured(printed: &Published) -> Line {
    let axis = (printed.x_name.clone(), printed.x.clone());
    let line = Line::new(
        &printed.series,
        axis,
        &printed.metric,
        &printed.unit,
        Vec::new(),
    );
    line.judged(Some(printed.clone()), Rule::OneMoreRun)
}
