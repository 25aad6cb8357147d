//! Plots of probes over time: a single run as recorded, or the median of several runs.

use anabranch_scenario::output::{Curve, CurveStyle, Scale};
use anabranch_scenario::records::{SeriesError, SeriesRecord, SeriesSample};
use anabranch_scenario::value::Point;

use super::Maker;
use super::curves::LayerSet;
use super::downsample::downsample;
use super::plot::{Axis, Layer, Mark, Plot, PlotPoint};
use crate::statistics::quantile;
use crate::unit;

/// Number of times at which several runs are evaluated, if they were sampled at different times.
const INSTANTS: usize = 240;

/// Maximum number of curves for which single runs are drawn too. With more curves, the lines would
/// overlap too much.
const WITH_SINGLE_RUNS: usize = 3;

/// Share of the runs below the band, which equals the share of the runs above it.
const OUTSIDE: f64 = 0.1;

impl Maker<'_> {
    /// Curves of probes over time, and a sentence about how they were computed.
    pub(super) fn time(&self) -> Result<(Option<Plot>, String), SeriesError> {
        let mut drawn = LayerSet::default();
        let mut most = 0;
        for (index, curve) in self.spec.curves.iter().enumerate() {
            let runs = match curve.constant.is_empty() {
                true => self.series_of(curve)?,
                false => vec![self.given(curve)],
            };
            most = most.max(runs.len());
            self.time_curve(curve, index, &runs, &mut drawn);
        }
        let made = match most {
            0 | 1 => self.made_of_series(),
            most => {
                let single = match self.spec.curves.len() {
                    0..=WITH_SINGLE_RUNS => format!(
                        "; the thin line is one of them, replication {}",
                        self.spec.replication
                    ),
                    _ => String::new(),
                };
                format!(
                    "Drawn from series/{}.parquet: the median of {most} runs and the band that holds the middle 80 % of them{single}.",
                    self.experiment
                )
            }
        };
        if drawn.points().next().is_none() {
            return Ok((None, made));
        }
        let label = unit::axis_label(&drawn.y_name, &drawn.y_unit);
        let label = self.spec.y_label.clone().unwrap_or(label);
        let plot = Plot {
            x: self.time_axis(drawn.points().map(|point| point.x)),
            y: match self.spec.y_scale {
                Scale::Log => Axis::logarithmic(label, drawn.points().map(|it| it.y), 7),
                Scale::Linear => Axis::around(label, drawn.points().flat_map(PlotPoint::reach), 7),
            },
            layers: drawn.layers,
        };
        Ok((Some(plot), made))
    }

    pub(super) fn time_axis(&self, times: impl Iterator<Item = f64>) -> Axis {
        let (low, high) = match self.window() {
            Some(window) => window,
            None => times.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), t| {
                (l.min(t), h.max(t))
            }),
        };
        let label = self.spec.x_label.clone();
        Axis::between(label.unwrap_or_else(|| "time (s)".to_owned()), low, high, 9)
    }

    /// The series of a step function that the spec defines, up to the end of the window or of the
    /// run.
    fn given(&self, curve: &Curve) -> Vec<SeriesRecord> {
        let sample = |(from, rate): &(_, anabranch_scenario::quantity::Rate)| {
            let from: &anabranch_scenario::quantity::TimeSpan = from;
            SeriesSample {
                index: 0,
                time: from.seconds(),
                value: rate.0 as f64,
            }
        };
        vec![SeriesRecord {
            experiment: self.experiment.to_owned(),
            point: Point::new(),
            replication: self.spec.replication,
            entity: String::new(),
            member: 0,
            probe: "throughput".to_owned(),
            samples: curve.constant.iter().map(sample).collect(),
        }]
    }

    /// Draws the curve of each run, member by member.
    fn time_curve(
        &self,
        curve: &Curve,
        index: usize,
        runs: &[Vec<SeriesRecord>],
        drawn: &mut LayerSet,
    ) {
        let Some(first) = runs.iter().flatten().next() else {
            return;
        };
        let own = anabranch_scenario::unit::of_probe(&first.probe);
        let wanted = unit::in_figures(curve.unit.as_deref(), own);
        let shown = unit::shown(&first.probe, wanted, self.spec.segment_size);
        drawn.y_unit = shown.name.to_owned();
        drawn.y_name = unit::readable(&first.probe);
        let mark = match curve.style {
            CurveStyle::Line => Mark::Line,
            CurveStyle::Step | CurveStyle::DashedStep => Mark::Step,
            CurveStyle::Points => Mark::Dots,
        };
        let dash = self.dash(index);
        let held = mark == Mark::Step;
        let cut = |series: &SeriesRecord| self.cut(series, shown.divisor, held);
        let mut label = curve.label.clone();
        if runs.len() > 1 && mark != Mark::Dots {
            let all: Vec<_> = runs.iter().flatten().map(cut).collect();
            let middle = self.middle(&all, held);
            drawn.push(String::new(), index, Mark::Band, middle.clone());
            if self.spec.curves.len() <= WITH_SINGLE_RUNS {
                for series in &runs[0] {
                    let mark = if held { Mark::Step } else { Mark::Line };
                    let points = staircase(mark, cut(series));
                    drawn.push(String::new(), index, Mark::Single, points);
                }
            }
            drawn.push(
                label,
                index,
                mark,
                middle.iter().map(|it| PlotPoint::new(it.x, it.y)).collect(),
            );
        } else {
            for series in &runs[0] {
                // Only the first member has the label, so that the legend lists the curve once.
                let points = downsample(mark, cut(series));
                drawn.push(std::mem::take(&mut label), index, mark, points);
            }
        }
        for layer in drawn
            .layers
            .iter_mut()
            .filter(|it| it.curve == index && it.mark == mark)
        {
            layer.dash = dash;
        }
        self.printed_over_time(curve, index, shown, drawn);
    }

    /// Dash pattern of a curve: the first is solid, and the others have different patterns. Curves
    /// that the spec defines as dashed are always dashed.
    fn dash(&self, index: usize) -> usize {
        let style = |at: usize| self.spec.curves.get(at).map(|curve| curve.style);
        let before = (0..index).filter(|at| style(*at) == style(index)).count();
        match style(index) {
            Some(CurveStyle::DashedStep) => 1 + before,
            _ if before == 0 => 0,
            _ => 2 + before,
        }
    }

    fn printed_over_time(
        &self,
        curve: &Curve,
        index: usize,
        shown: unit::DisplayUnit<'_>,
        drawn: &mut LayerSet,
    ) {
        let (Some(place), Some(printed)) = (&self.spec.published, &curve.printed) else {
            return;
        };
        let rows = self.reference.published(place);
        let rows = rows.filter(|row| row.series == *printed && row.x_name == "time");
        let points = rows.filter_map(|row| {
            let scale = match row.unit == shown.name {
                true => 1.0,
                false => shown.divisor,
            };
            Some(PlotPoint::new(row.x.parse().ok()?, row.value / scale))
        });
        let inside = |point: &PlotPoint| {
            let window = self.window();
            window.is_none_or(|(from, to)| from <= point.x && point.x <= to)
        };
        let label = format!("{}, printed", curve.label);
        drawn.push(label, index, Mark::Printed, points.filter(inside).collect());
    }

    /// Median of several series at each time, and the band that contains the middle 80 % of them.
    fn middle(&self, all: &[Vec<PlotPoint>], held: bool) -> Vec<PlotPoint> {
        let times = |points: &[PlotPoint]| points.iter().map(|it| it.x).collect::<Vec<f64>>();
        let longest = all.iter().max_by_key(|points| points.len());
        let longest = longest.map_or(Vec::new(), |points| times(points));
        let (Some(first), Some(last)) = (longest.first(), longest.last()) else {
            return Vec::new();
        };
        let alike = !held && all.iter().all(|points| longest.starts_with(&times(points)));
        let (from, to) = self.window().unwrap_or((*first, *last));
        let step = (to - from) / (INSTANTS - 1) as f64;
        let instants: Vec<f64> = match alike {
            true => longest,
            false => (0..INSTANTS).map(|at| from + step * at as f64).collect(),
        };
        let at = |x: f64| {
            let value = |points: &Vec<PlotPoint>| {
                let after = points.partition_point(|it| it.x <= x + 1e-9);
                Some(points[after.checked_sub(1)?].y)
            };
            let mut values: Vec<f64> = all.iter().filter_map(value).collect();
            values.sort_by(f64::total_cmp);
            // Times at which too many series have not started yet are omitted, because the median
            // would shift when they start.
            let enough = (all.len() - values.len()) as f64 <= OUTSIDE * all.len() as f64;
            let span = (
                quantile(&values, OUTSIDE)?,
                quantile(&values, 1.0 - OUTSIDE)?,
            );
            let y = quantile(&values, 0.5)?;
            enough.then_some(PlotPoint {
                x,
                y,
                span: Some(span),
            })
        };
        instants.into_iter().filter_map(at).collect()
    }

    /// Samples in the window. A held value also counts from the start of the window to its end.
    pub(super) fn cut(&self, series: &SeriesRecord, divisor: f64, held: bool) -> Vec<PlotPoint> {
        let (from, to) = self.window().unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
        let begin = series.samples.partition_point(|sample| sample.time < from);
        let end = series.samples.partition_point(|sample| sample.time <= to);
        let mut points: Vec<PlotPoint> = series.samples[begin..end]
            .iter()
            .map(|s| PlotPoint::new(s.time, s.value / divisor))
            .collect();
        if held && from.is_finite() {
            if let Some(before) = series.samples[..begin].last() {
                points.insert(0, PlotPoint::new(from, before.value / divisor));
            }
            if let Some(last) = points.last().copied() {
                points.push(PlotPoint::new(to, last.y));
            }
        }
        points
    }
}

/// Converts points to the corners of a staircase if their mark is a held line.
fn staircase(mark: Mark, points: Vec<PlotPoint>) -> Vec<PlotPoint> {
    let line = Layer {
        label: String::new(),
        curve: 0,
        dash: 0,
        mark,
        points,
    };
    let corners = line.corners().into_iter();
    corners.map(|(x, y)| PlotPoint::new(x, y)).collect()
}
