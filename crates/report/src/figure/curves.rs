//! Plots made of measures over a sweep, of probes over time, and of sequence numbers over time.

use anabranch_scenario::output::{Curve, Style};
use anabranch_scenario::records::SeriesError;
use anabranch_scenario::records::{RunRecord, Series, SeriesSample};
use anabranch_scenario::value::Point;

use super::Maker;
use super::plot::{Axis, Layer, Mark, Plot, PlotPoint};
use crate::statistics::Summary;
use crate::table::{axis, by_point, in_unit, joined, same_x, values, within};
use crate::unit;

/// What a curve becomes, before the axes are known.
struct Drawn {
    layers: Vec<Layer>,
    y_unit: String,
    y_name: String,
}

/// Moves curves of means a little to either side, so that their intervals do not hide one another; all of them
/// together over no more than a third of the way to the next place.
fn set_apart(layers: &mut [Layer], places: &[f64]) {
    let mut sorted = places.to_vec();
    sorted.sort_by(f64::total_cmp);
    let gaps = sorted.windows(2).map(|pair| pair[1] - pair[0]);
    let gap = gaps.filter(|gap| *gap > 0.0).fold(f64::INFINITY, f64::min);
    let (Some(low), Some(high)) = (sorted.first(), sorted.last()) else {
        return;
    };
    let of_means = |layer: &&mut Layer| layer.mark.is_of_means();
    let count = layers
        .iter()
        .filter(|layer| layer.mark.is_of_means())
        .count();
    let step = (0.012 * (high - low)).min(gap / 3.0 / count.max(1) as f64);
    for (index, layer) in layers.iter_mut().filter(of_means).enumerate() {
        let shift = (index as f64 - (count as f64 - 1.0) / 2.0) * step;
        layer.points.iter_mut().for_each(|point| point.x += shift);
    }
}

impl Maker<'_> {
    /// Means of measures over the sweep's x. Texts stand at 0, 1, 2, ... in order of appearance.
    pub(super) fn sweep(&self) -> Option<Plot> {
        let (x_name, xs) = self.places();
        let numbers: Option<Vec<f64>> = xs.iter().map(|x| x.parse().ok()).collect();
        let mark = match numbers {
            Some(_) => Mark::Means,
            None => Mark::SeparateMeans,
        };
        let places = numbers.unwrap_or_else(|| (0..xs.len()).map(|i| i as f64).collect());
        let mut drawn = Drawn {
            layers: Vec::new(),
            y_unit: String::new(),
            y_name: String::new(),
        };
        for (colour, curve) in self.spec.curves.iter().enumerate() {
            self.sweep_curve(curve, colour, &xs, &places, &mut drawn);
        }
        for layer in &mut drawn.layers {
            if layer.mark == Mark::Means {
                layer.mark = mark;
            }
        }
        set_apart(&mut drawn.layers, &places);
        drawn
            .layers
            .sort_by_key(|layer| layer.mark == Mark::Printed);
        let all = || drawn.layers.iter().flat_map(|layer| &layer.points);
        all().next()?;
        let heights =
            all().flat_map(|p| [p.y - p.half.unwrap_or(0.0), p.y + p.half.unwrap_or(0.0)]);
        let y_label = self
            .spec
            .y_label
            .clone()
            .unwrap_or(unit::axis_label(&drawn.y_name, &drawn.y_unit));
        Some(Plot {
            x: self.sweep_axis(&x_name, &xs, &places),
            y: Axis::around(y_label, heights, 6),
            layers: drawn.layers,
        })
    }

    /// The name of the axis and every x that a curve has, in order of appearance.
    fn places(&self) -> (String, Vec<String>) {
        let (mut x_name, mut xs) = (String::new(), Vec::<String>::new());
        for curve in &self.spec.curves {
            for (point, _) in self.curve_points(curve) {
                let (name, x) = axis(&point);
                x_name = name;
                if !xs.iter().any(|other| same_x(other, &x)) {
                    xs.push(x);
                }
            }
        }
        (x_name, xs)
    }

    /// The points of a curve over a sweep, without the sweeps that it or the figure fixes, and their records.
    fn curve_points<'r>(&'r self, curve: &'r Curve) -> Vec<(Point, Vec<&'r RunRecord>)> {
        let experiment = curve.experiment.as_deref().unwrap_or(self.experiment);
        let fixed = joined(&self.spec.at_point, &curve.at_point);
        let points = by_point(self.results, experiment).into_iter();
        points
            .filter_map(|(point, records)| Some((within(point, &fixed)?, records)))
            .collect()
    }

    fn sweep_axis(&self, x_name: &str, xs: &[String], places: &[f64]) -> Axis {
        let spec = &self.results.spec;
        let named = |id: &str| {
            spec.experiments
                .iter()
                .find(|experiment| experiment.id == id)
        };
        let source = || {
            let derived = spec
                .derived
                .iter()
                .find(|derived| derived.id() == self.experiment)?;
            named(derived.experiment())
        };
        let label = named(self.experiment)
            .or_else(source)
            .and_then(|experiment| {
                let sweep = experiment
                    .sweeps
                    .iter()
                    .find(|sweep| sweep.x_name() == Some(x_name))?;
                sweep.label.clone()
            });
        let name = label.or((!x_name.is_empty()).then(|| x_name.to_owned()));
        let (low, high) = places
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), p| {
                (l.min(*p), h.max(*p))
            });
        let margin = if high > low { 0.08 * (high - low) } else { 1.0 };
        Axis {
            label: self
                .spec
                .x_label
                .clone()
                .or(name)
                .unwrap_or_else(|| "x".to_owned()),
            low: low - margin,
            high: high + margin,
            ticks: places.iter().copied().zip(xs.iter().cloned()).collect(),
        }
    }

    fn sweep_curve(
        &self,
        curve: &Curve,
        colour: usize,
        xs: &[String],
        places: &[f64],
        drawn: &mut Drawn,
    ) {
        let (series, metric) = (
            curve.series.as_deref().unwrap_or("all"),
            curve.metric.as_deref().unwrap_or_default(),
        );
        let place_of = |x: &str| {
            xs.iter()
                .position(|other| same_x(other, x))
                .map(|index| places[index])
        };
        let mut points = Vec::new();
        for (point, records) in self.curve_points(curve) {
            let (values, unit) = in_unit(values(&records, series, metric), curve.unit.as_deref());
            let summary = Summary::of(&values.iter().map(|(_, value)| *value).collect::<Vec<_>>());
            if let (Some(summary), Some(x)) = (summary, place_of(&axis(&point).1)) {
                points.push(PlotPoint {
                    x,
                    y: summary.mean,
                    half: summary.confidence(),
                });
                drawn.y_unit = unit;
                drawn.y_name = unit::readable(metric);
            }
        }
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        drawn.layers.push(Layer {
            label: curve.label.clone(),
            colour,
            mark: Mark::Means,
            points,
        });
        let (Some(place), Some(printed)) = (&self.spec.published, &curve.printed) else {
            return;
        };
        let points: Vec<PlotPoint> = self
            .reference
            .published(place)
            .filter(|row| row.series == *printed && row.metric == metric)
            .filter_map(|row| Some(PlotPoint::new(place_of(&row.x)?, row.value)))
            .collect();
        self.push_printed(points, drawn);
    }

    fn push_printed(&self, points: Vec<PlotPoint>, drawn: &mut Drawn) {
        if !points.is_empty() {
            let said = drawn.layers.iter().any(|layer| layer.mark == Mark::Printed);
            let label = if said {
                String::new()
            } else {
                "printed in the paper".to_owned()
            };
            drawn.layers.push(Layer {
                label,
                colour: 0,
                mark: Mark::Printed,
                points,
            });
        }
    }

    /// Probes over time.
    pub(super) fn time(&self) -> Result<Option<Plot>, SeriesError> {
        let mut drawn = Drawn {
            layers: Vec::new(),
            y_unit: String::new(),
            y_name: String::new(),
        };
        for (colour, curve) in self.spec.curves.iter().enumerate() {
            if !curve.given.is_empty() {
                self.given_curve(curve, colour, &mut drawn);
            }
            for (index, series) in self.series_of(curve)?.iter().enumerate() {
                // The legend names the curve once.
                let label = if index == 0 { curve.label.as_str() } else { "" };
                self.time_curve(curve, label, colour, series, &mut drawn);
            }
        }
        let all = || drawn.layers.iter().flat_map(|layer| &layer.points);
        if all().next().is_none() {
            return Ok(None);
        }
        let label = self
            .spec
            .y_label
            .clone()
            .unwrap_or_else(|| unit::axis_label(&drawn.y_name, &drawn.y_unit));
        let y = Axis::around(label, all().map(|point| point.y), 6);
        let x = self.time_axis(all().map(|point| point.x));
        Ok(Some(Plot {
            x,
            y,
            layers: drawn.layers,
        }))
    }

    fn time_axis(&self, times: impl Iterator<Item = f64>) -> Axis {
        let (low, high) = match self.window() {
            Some(window) => window,
            None => times.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), t| {
                (l.min(t), h.max(t))
            }),
        };
        Axis::between(
            self.spec
                .x_label
                .clone()
                .unwrap_or_else(|| "time (s)".to_owned()),
            low,
            high,
            10,
        )
    }

    /// A curve of steps that the spec gives, to the end of the window or of the run.
    fn given_curve(&self, curve: &Curve, colour: usize, drawn: &mut Drawn) {
        let series = Series {
            experiment: self.experiment.to_owned(),
            point: Point::new(),
            replication: self.spec.replication,
            entity: String::new(),
            member: 0,
            probe: "throughput".to_owned(),
            samples: curve
                .given
                .iter()
                .map(|(from, rate)| SeriesSample {
                    index: 0,
                    time: from.seconds(),
                    value: rate.0 as f64,
                })
                .collect(),
        };
        self.time_curve(curve, &curve.label, colour, &series, drawn);
    }

    fn time_curve(
        &self,
        curve: &Curve,
        label: &str,
        colour: usize,
        series: &Series,
        drawn: &mut Drawn,
    ) {
        let shown = unit::shown(&series.probe, curve.unit.as_deref(), self.spec.segment_size);
        drawn.y_unit = shown.name.to_owned();
        drawn.y_name = unit::readable(&series.probe);
        let (mark, held) = match curve.style {
            Style::Line => (Mark::Line, false),
            Style::Step => (Mark::Step, true),
            Style::DashedStep => (Mark::DashedStep, true),
            Style::Points => (Mark::Dots, false),
        };
        let points = self.cut(series, shown.divisor, held);
        drawn.layers.push(Layer {
            label: label.to_owned(),
            colour,
            mark,
            points,
        });
        let (Some(place), Some(printed)) = (&self.spec.published, &curve.printed) else {
            return;
        };
        let scale = |unit: &str| {
            if unit == shown.name {
                1.0
            } else {
                shown.divisor
            }
        };
        let points = self
            .reference
            .published(place)
            .filter(|row| row.series == *printed && row.x_name == "time")
            .filter_map(|row| {
                Some(PlotPoint::new(
                    row.x.parse().ok()?,
                    row.value / scale(&row.unit),
                ))
            })
            .filter(|point| {
                self.window()
                    .is_none_or(|(from, to)| from <= point.x && point.x <= to)
            })
            .collect();
        self.push_printed(points, drawn);
    }

    /// The samples inside the window; a held value is carried in from before it and on to its end.
    fn cut(&self, series: &Series, divisor: f64, held: bool) -> Vec<PlotPoint> {
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

    /// Segments sent and acknowledgements received over time, numbers counted from 1 and shown modulo what is asked.
    pub(super) fn sequence(&self) -> Result<Option<Plot>, SeriesError> {
        let flow = self.spec.flow.as_deref().unwrap_or_default();
        // A segment counted from 0 is shown counted from 1; an acknowledgement's first number not covered, counted
        // from 0, is already the last one covered, counted from 1.
        let parts = [
            (
                "SACK received",
                Mark::Crosses,
                4,
                0.0,
                &["cumulative_ack", "duplicate_ack"] as &[&str],
            ),
            ("segment sent", Mark::Dots, 0, 1.0, &["sent"]),
            (
                "segment sent again",
                Mark::SmallDiscs,
                1,
                1.0,
                &["retransmitted"],
            ),
        ];
        let fold = |number: f64| {
            self.spec
                .modulo
                .map_or(number, |modulo| number % modulo.max(1) as f64)
        };
        let mut layers = Vec::new();
        for (label, mark, colour, first, probes) in parts {
            let mut points = Vec::new();
            for probe in probes {
                let Some(series) = self.series(flow, self.spec.member, probe)? else {
                    continue;
                };
                let numbers = self.cut(&series, 1.0, false);
                points.extend(
                    numbers
                        .iter()
                        .map(|point| PlotPoint::new(point.x, fold(point.y + first))),
                );
            }
            if !points.is_empty() {
                points.sort_by(|a, b| a.x.total_cmp(&b.x));
                layers.push(Layer {
                    label: label.to_owned(),
                    colour,
                    mark,
                    points,
                });
            }
        }
        let all = || layers.iter().flat_map(|layer: &Layer| &layer.points);
        if all().next().is_none() {
            return Ok(None);
        }
        let label = match (&self.spec.y_label, self.spec.modulo) {
            (Some(label), _) => label.clone(),
            (None, Some(modulo)) => format!("segment number modulo {modulo}"),
            (None, None) => "segment number".to_owned(),
        };
        let y = match self.spec.modulo {
            Some(modulo) => Axis::between(label, 0.0, modulo as f64, 10),
            None => Axis::around(label, all().map(|point| point.y), 8),
        };
        let x = self.time_axis(all().map(|point| point.x));
        Ok(Some(Plot { x, y, layers }))
    }
}
