//! Comparison of the measures of two results.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_lab::columns::Axes;
use anabranch_report::statistics::{Summary, paired_difference};
use anabranch_scenario::records::{Results as Records, RunRecord};
use anabranch_scenario::value::Point;
use arrow_array::{ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, UInt32Array};
use arrow_schema::{DataType, Field, Schema};
use pyo3::prelude::*;

use crate::error;
use crate::results::Results;
use crate::table::{Table, table};

/// Columns of the comparison, except those of the sweeps.
const OTHERS: [&str; 9] = [
    "experiment",
    "series",
    "metric",
    "unit",
    "a",
    "b",
    "difference",
    "ci95",
    "replications",
];
const PAIRED: &str = "paired";

/// One measure at one point, with its values in both results.
struct Comparison<'r> {
    experiment: &'r str,
    point: &'r Point,
    series: &'r str,
    metric: &'r str,
    unit: &'r str,
    a: Vec<(u32, f64)>,
    b: Vec<(u32, f64)>,
}

/// The difference b - a: mean, half width of its 95 % Student-t interval, number of replications,
/// and whether it was computed from paired replications.
fn difference(line: &Comparison<'_>, paired: bool) -> Option<(f64, Option<f64>, u32, bool)> {
    if paired {
        let summary = paired_difference(&line.b, &line.a)?;
        let replications = u32::try_from(summary.replications).ok()?;
        return Some((summary.mean, summary.confidence(), replications, true));
    }
    let values = |of: &[(u32, f64)]| of.iter().map(|(_, value)| *value).collect::<Vec<_>>();
    let (a, b) = (
        Summary::of(&values(&line.a))?,
        Summary::of(&values(&line.b))?,
    );
    // Combines the intervals of both sides as independent errors.
    let ci = a.confidence().zip(b.confidence()).map(|(a, b)| a.hypot(b));
    let replications = u32::try_from(a.replications.min(b.replications)).ok()?;
    Some((b.mean - a.mean, ci, replications, false))
}

/// Quantities that both results contain, in the order of the first.
fn lines<'r>(a: &'r Records, b: &'r Records) -> Vec<Comparison<'r>> {
    type Key<'r> = (&'r str, String, &'r str, &'r str);
    let key = |record: &'r RunRecord, series: &'r str, metric: &'r str| -> Key<'r> {
        let point = serde_json::to_string(&record.point).unwrap_or_default();
        (&record.experiment, point, series, metric)
    };
    let mut places: BTreeMap<Key<'_>, usize> = BTreeMap::new();
    let mut lines: Vec<Comparison<'_>> = Vec::new();
    for record in &a.records {
        for measure in &record.metrics {
            let place = places.entry(key(record, &measure.series, &measure.metric));
            let place = *place.or_insert_with(|| {
                lines.push(Comparison {
                    experiment: &record.experiment,
                    point: &record.point,
                    series: &measure.series,
                    metric: &measure.metric,
                    unit: &measure.unit,
                    a: Vec::new(),
                    b: Vec::new(),
                });
                lines.len() - 1
            });
            lines[place].a.push((record.replication, measure.value));
        }
    }
    for record in &b.records {
        for measure in &record.metrics {
            let place = places.get(&key(record, &measure.series, &measure.metric));
            if let Some(line) = place.map(|&place| &mut lines[place])
                && line.unit == measure.unit
            {
                line.b.push((record.replication, measure.value));
            }
        }
    }
    lines.retain(|line| !line.b.is_empty());
    lines
}

/// compare(a, b): the difference b - a of every measure that both results contain, at every point:
/// means, difference, and the half width of its 95 % Student-t interval (`ci95`; null for one
/// replication). If both have the same seed, replications with the same number use the same random
/// streams, so their differences are paired (`paired`).
#[pyfunction]
pub fn compare(a: &Bound<'_, Results>, b: &Bound<'_, Results>) -> PyResult<Table> {
    let (a, b) = (a.get(), b.get());
    let paired = a.records.manifest.seed == b.records.manifest.seed;
    let lines = lines(&a.records, &b.records);
    if lines.is_empty() {
        return Err(error::asked(
            "the two have no measure in common: same experiments, points, series and metrics are compared",
        ));
    }
    let others: Vec<&str> = OTHERS.into_iter().chain([PAIRED]).collect();
    let axes = Axes::of(lines.iter().map(|line| line.point), &others);
    let differences: Vec<_> = lines.iter().map(|line| difference(line, paired)).collect();
    let text = |of: fn(&Comparison<'_>) -> String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(lines.iter().map(of)))
    };
    let mean = |values: &[(u32, f64)]| {
        values.iter().map(|(_, value)| value).sum::<f64>() / values.len() as f64
    };
    let a = lines.iter().map(|line| mean(&line.a));
    let b = lines.iter().map(|line| mean(&line.b));
    let mut columns = vec![text(|line| line.experiment.to_owned())];
    columns.extend(axes.arrays(lines.iter().map(|line| line.point)));
    columns.extend([
        text(|line| line.series.to_owned()),
        text(|line| line.metric.to_owned()),
        text(|line| line.unit.to_owned()),
        Arc::new(Float64Array::from_iter_values(a)),
        Arc::new(Float64Array::from_iter_values(b)),
    ]);
    let each = || differences.iter();
    columns.push(Arc::new(Float64Array::from_iter(
        each().map(|it| it.map(|it| it.0)),
    )));
    columns.push(Arc::new(Float64Array::from_iter(
        each().map(|it| it.and_then(|it| it.1)),
    )));
    columns.push(Arc::new(UInt32Array::from_iter(
        each().map(|it| it.map(|it| it.2)),
    )));
    columns.push(Arc::new(BooleanArray::from_iter(
        each().map(|it| it.map(|it| it.3)),
    )));
    let kinds = [
        DataType::Utf8,
        DataType::Utf8,
        DataType::Utf8,
        DataType::Float64,
        DataType::Float64,
        DataType::Float64,
        DataType::Float64,
        DataType::UInt32,
        DataType::Boolean,
    ];
    let mut fields = vec![Field::new(OTHERS[0], DataType::Utf8, true)];
    fields.extend(axes.fields());
    let rest = others[1..].iter().zip(kinds);
    fields.extend(rest.map(|(name, kind)| Field::new(*name, kind, true)));
    let schema = Arc::new(Schema::new(fields));
    table(RecordBatch::try_new(schema, columns))
}
