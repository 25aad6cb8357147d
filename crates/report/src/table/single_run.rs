//! Tables about a single run: consecutive values of a probe, and times of events.

use anabranch_scenario::output::Row;
use anabranch_scenario::records::SeriesError;
use anabranch_scenario::records::{SeriesQuery, SeriesRecord};
use anabranch_scenario::value::{Point, SweepValue};

use super::{Maker, TableLine, not_measured};
use crate::compare::Rule;
use crate::reference::Published;
use crate::unit;

/// Metric for the time between two steps.
const ELAPSED: &str = "elapsed";

/// A value and its time in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Step {
    pub(super) time: f64,
    pub(super) value: f64,
}

/// Distinct consecutive values of a series, starting with its first decrease. Of several samples at
/// one time, the last counts.
pub(super) fn steps_from_decrease(series: &SeriesRecord) -> Vec<Step> {
    let mut settled: Vec<Step> = Vec::new();
    for sample in &series.samples {
        let step = Step {
            time: sample.time,
            value: sample.value,
        };
        if settled.last().is_some_and(|last| last.time == step.time) {
            settled.pop();
        }
        if settled.last().is_none_or(|last| last.value != step.value) {
            settled.push(step);
        }
    }
    match settled
        .windows(2)
        .position(|pair| pair[1].value < pair[0].value)
    {
        Some(before) => settled.split_off(before + 1),
        None => Vec::new(),
    }
}

/// The value that the probe has for a segment, counted from 1; true if a larger value also matches.
fn number_of(probe: &str, segment: u64) -> (f64, bool) {
    match probe {
        // The probe reports the first segment that is not covered, counted from 0, which equals the
        // last covered segment, counted from 1.
        "cumulative_ack" => (segment as f64, true),
        "duplicate_ack" => (segment as f64, false),
        _ => (segment as f64 - 1.0, false),
    }
}

/// Time at which the event of a row occurs, seconds.
pub(super) fn time_of(series: &SeriesRecord, row: &Row) -> Option<f64> {
    let wanted = row.segment.map(|segment| number_of(&series.probe, segment));
    let occurrence = row.occurrence.unwrap_or(1).max(1) as usize;
    series
        .samples
        .iter()
        .filter(|sample| {
            wanted.is_none_or(|(number, or_more)| {
                sample.value == number || or_more && sample.value > number
            })
        })
        .nth(occurrence - 1)
        .map(|sample| sample.time)
}

/// The last value recorded up to a time.
fn value_at(series: &SeriesRecord, at: f64) -> Option<f64> {
    let until = series.samples.iter().take_while(|sample| sample.time <= at);
    until.last().map(|sample| sample.value)
}

/// Series and metric names of the lines of a step.
#[derive(Clone, Copy)]
struct StepNames<'a> {
    series: &'a str,
    metric: &'a str,
    unit: &'a str,
}

impl Maker<'_> {
    /// The series of a probe for a row: the first recorded one of the first replication.
    fn series(&self, row: &Row, probe: &str) -> Result<Option<SeriesRecord>, SeriesError> {
        let query = SeriesQuery {
            experiment: self.experiment,
            entity: row.flow.as_deref().or(row.link.as_deref()),
            member: Some(row.member),
            probe: Some(probe),
            replication: Some(0),
        };
        Ok(self.results.series(&query)?.into_iter().next())
    }

    fn tolerance(&self) -> Rule {
        Rule::Within(self.spec.time_tolerance.map_or(0.0, |span| span.seconds()))
    }

    pub(super) fn steps(&self) -> Result<Vec<TableLine>, SeriesError> {
        let mut lines = Vec::new();
        for row in &self.spec.rows {
            let probe = row.probe.as_deref().unwrap_or("cwnd");
            let metric = row.metric.as_deref().unwrap_or(probe);
            let name = row
                .series
                .as_deref()
                .or(row.flow.as_deref())
                .unwrap_or_default();
            let shown = unit::shown(probe, row.unit.as_deref(), row.segment_size);
            let steps = self
                .series(row, probe)?
                .map_or(Vec::new(), |series| steps_from_decrease(&series));
            let printed: Vec<&Published> = self.printed(name, metric).collect();
            let count = row.count.map_or(printed.len(), |count| count as usize);
            let mut times = Vec::with_capacity(count);
            for index in 0..count {
                let step = steps.get(index).map(|step| Step {
                    value: step.value / shown.divisor,
                    ..*step
                });
                let named = StepNames {
                    series: name,
                    metric,
                    unit: shown.name,
                };
                let printed = printed.get(index).copied();
                let [value, time] = self.step_lines(row, named, index, step, printed);
                lines.push(value);
                times.push(time);
            }
            lines.append(&mut times);
            if let Some(last) = row.elapsed {
                lines.push(self.elapsed_line(name, &steps, last));
            }
        }
        Ok(lines)
    }

    /// Line with the time from the first step to step `last`.
    fn elapsed_line(&self, series: &str, steps: &[Step], last: u32) -> TableLine {
        let to = steps.get((last as usize).saturating_sub(1));
        let elapsed = steps.first().zip(to).map(|(from, to)| to.time - from.time);
        let x = format!("1-{last}");
        let published = self
            .reference
            .published(self.place())
            .find(|it| it.series == series && it.metric == ELAPSED && it.x == x)
            .cloned();
        let axis = ("steps".to_owned(), x);
        let line = TableLine::new(series, axis, ELAPSED, "s", elapsed.into_iter().collect());
        line.judged(published, Rule::Within(0.0))
    }

    /// The two lines of a step: its value and its time. Their x is the published time of the step,
    /// so that they match the published values. Without a published time, it is the number of the
    /// step.
    fn step_lines(
        &self,
        row: &Row,
        named: StepNames<'_>,
        index: usize,
        step: Option<Step>,
        printed: Option<&Published>,
    ) -> [TableLine; 2] {
        let (x_name, x) = match printed {
            Some(printed) => (printed.x_name.clone(), printed.x.clone()),
            None => ("step".to_owned(), (index + 1).to_string()),
        };
        let printed_time = printed
            .filter(|printed| printed.x_name == "time")
            .and_then(|printed| {
                let value = printed.x.parse().ok()?;
                let (metric, unit) = ("time".to_owned(), "s".to_owned());
                Some(Published {
                    value,
                    metric,
                    unit,
                    printed: printed.x.clone(),
                    tolerance: None,
                    ..printed.clone()
                })
            });
        let line = |metric, unit, value: Option<f64>| {
            let axis = (x_name.clone(), x.clone());
            TableLine::new(named.series, axis, metric, unit, Vec::from_iter(value))
        };
        let value = line(named.metric, named.unit, step.map(|step| step.value));
        let time = line("time", "s", step.map(|step| step.time));
        let comparisons = self.comparisons(row, index, &single_point(&x), &time);
        [
            value.judged(printed.cloned(), Rule::Within(0.0)),
            TableLine {
                comparisons,
                ..time.judged(printed_time, self.tolerance())
            },
        ]
    }

    pub(super) fn events(&self) -> Result<Vec<TableLine>, SeriesError> {
        let mut lines = Vec::new();
        for row in &self.spec.rows {
            let name = row
                .series
                .as_deref()
                .or(row.flow.as_deref())
                .or(row.link.as_deref())
                .unwrap_or_default();
            let metric = row.metric.as_deref().unwrap_or("time");
            let x = row.x.as_ref().map_or_else(String::new, ToString::to_string);
            let x_name = row.x_name.clone().unwrap_or_else(|| "event".to_owned());
            let series = self.series(row, row.probe.as_deref().unwrap_or_default())?;
            let time = series.and_then(|series| time_of(&series, row));
            let (measured, unit, rule) = match row.read_probe.as_deref() {
                None => (time, "s", self.tolerance()),
                Some(read) => {
                    let shown = unit::shown(read, row.unit.as_deref(), row.segment_size);
                    let series = self.series(row, read)?;
                    let value = series.zip(time).and_then(|(it, at)| value_at(&it, at));
                    let value = value.map(|value| value / shown.divisor);
                    (value, shown.name, Rule::Within(0.0))
                }
            };
            let published = self
                .printed(name, metric)
                .find(|p| p.x_name == x_name && p.x == x)
                .cloned();
            let Some(measured) = measured else {
                lines.extend(published.as_ref().map(not_measured));
                continue;
            };
            let line = TableLine::new(name, (x_name, x.clone()), metric, unit, vec![measured]);
            let comparisons = self.comparisons(row, 0, &single_point(&x), &line);
            lines.push(TableLine {
                comparisons,
                ..line.judged(published, rule)
            });
        }
        Ok(lines)
    }
}

/// A point whose only value is `x`, for the conditions of an independent program.
fn single_point(x: &str) -> Point {
    vec![("x".to_owned(), SweepValue::Text(x.to_owned()))]
}
