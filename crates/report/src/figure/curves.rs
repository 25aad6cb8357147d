//! Plots of measures over a sweep, and of sequence numbers over time.

use anabranch_scenario::axis::in_one_unit;
use anabranch_scenario::output::{Curve, FigureKind, Scale, XUnit};
use anabranch_scenario::records::{RunRecord, SeriesError};
use anabranch_scenario::value::Point;

use super::Maker;
use super::plot::{Axis, Layer, Mark, Plot, PlotPoint};
use crate::compare::{self, Judgement, Rule, digits};
use crate::statistics::Summary;
use crate::table::{alone, axis, by_point, in_unit, joined, same_x, values, within};
use crate::unit;

/// Layers of a plot whose axes are not known yet.
#[derive(Default)]
pub(super) struct LayerSet {
    pub(super) layers: Vec<Layer>,
    pub(super) y_unit: String,
    pub(super) y_name: String,
}

impl LayerSet {
    /// Adds a layer with a solid line, unless it has no points.
    pub(super) fn push(&mut self, label: String, curve: usize, mark: Mark, points: Vec<PlotPoint>) {
        if !points.is_empty() {
            self.layers.push(Layer {
                label,
                curve,
                dash: 0,
                mark,
                points,
            });
        }
    }

    pub(super) fn points(&self) -> impl Iterator<Item = &PlotPoint> {
        self.layers.iter().flat_map(|layer| &layer.points)
    }
}

/// A curve over a sweep: the values of the runs at each x.
struct SweptCurve {
    curve: usize,
    at: Vec<(f64, Vec<f64>)>,
}

impl SweptCurve {
    fn draw(&self, label: &str, mark: Mark, drawn: &mut LayerSet) {
        // Single runs are not shown with bars, because the bars would hide them.
        let shown = |runs: &[f64]| runs.len() > 1 && mark != Mark::Bars;
        let runs = self.at.iter().filter(|(_, runs)| shown(runs));
        let runs = runs.flat_map(|(x, runs)| runs.iter().map(|run| PlotPoint::new(*x, *run)));
        drawn.push(String::new(), self.curve, Mark::Runs, runs.collect());
        let mean = |(x, runs): &(f64, Vec<f64>)| {
            let summary = Summary::of(runs)?;
            let half = summary.confidence();
            Some(PlotPoint {
                x: *x,
                y: summary.mean,
                span: half.map(|half| (summary.mean - half, summary.mean + half)),
            })
        };
        let means = self.at.iter().filter_map(mean).collect();
        drawn.push(label.to_owned(), self.curve, mark, means);
        if let Some(layer) = drawn.layers.last_mut().filter(|it| it.mark == Mark::Means) {
            layer.dash = self.curve;
        }
    }
}

/// Positions of the x values of a sweep along the axis.
struct AxisPositions {
    /// Position of each x: a number is at its own value, a quantity at its value in `unit`, and
    /// other texts are at 0, 1, 2, ...
    places: Vec<f64>,
    unit: Option<&'static str>,
    /// Whether the x values are numbers or quantities, so that a line through the points is
    /// meaningful.
    ordered: bool,
}

impl AxisPositions {
    fn of(xs: &[String]) -> Self {
        let number = |x: &String| x.parse().ok().filter(|x: &f64| x.is_finite());
        let plain: Option<Vec<f64>> = xs.iter().map(number).collect();
        let quantities = || in_one_unit(xs.iter().map(String::as_str));
        let known = match plain {
            Some(numbers) => Some((numbers, None)),
            None => quantities().map(|(numbers, unit)| (numbers, Some(unit))),
        };
        match known {
            Some((places, unit)) => Self {
                places,
                unit,
                ordered: true,
            },
            None => Self::names(xs),
        }
    }

    /// Positions for names, which are 0, 1, 2, ... in their order.
    fn names(xs: &[String]) -> Self {
        Self {
            places: (0..xs.len()).map(|i| i as f64).collect(),
            unit: None,
            ordered: false,
        }
    }

    /// Ends of the axis, with a margin around the positions, and whether the axis is logarithmic.
    fn ends(&self, scale: Scale) -> (f64, f64, bool) {
        let places = self.places.iter();
        let (low, high) = places.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), at| {
            (low.min(*at), high.max(*at))
        });
        if scale == Scale::Log && self.ordered && low > 0.0 && high > low {
            let margin = (high / low).powf(0.08);
            return (low / margin, high * margin, true);
        }
        let margin = if high > low { 0.08 * (high - low) } else { 1.0 };
        (low - margin, high + margin, false)
    }
}

/// Share of the distance between two x values that the bars at one x occupy.
const BARS: f64 = 0.8;

/// Width of a bar if there are `count` bars at each x. The x values are 1 apart.
pub(super) fn bar_width(count: usize) -> f64 {
    BARS / count.max(1) as f64
}

/// Distance from x to the centre of a bar.
fn bar_place(index: usize, count: usize) -> f64 {
    (index as f64 - (count as f64 - 1.0) / 2.0) * bar_width(count)
}

/// Text with the ranks of printed values among the runs, in the order of x.
fn ranks(judged: &[Judgement]) -> String {
    let ranks: Vec<_> = judged.iter().filter_map(|it| it.rank).collect();
    let Some(first) = ranks.first() else {
        return String::new();
    };
    let places: Vec<String> = ranks.iter().map(|it| it.place().to_string()).collect();
    format!(" (rank {} of {})", places.join(", "), first.of)
}

impl Maker<'_> {
    /// Plot of the means of measures over the x values of a sweep.
    pub(super) fn sweep(&self) -> Option<Plot> {
        let (x_name, xs) = self.places();
        let bars = self.spec.kind == FigureKind::Bars;
        let along = match bars {
            true => AxisPositions::names(&xs),
            false => AxisPositions::of(&xs),
        };
        let mark = match along.ordered {
            _ if bars => Mark::Bars,
            true => Mark::Means,
            false => Mark::SeparateMeans,
        };
        let place_of = |x: &str| {
            let index = xs.iter().position(|other| same_x(other, x))?;
            along.places.get(index).copied()
        };
        let mut drawn = LayerSet::default();
        let count = self.spec.curves.len();
        for (index, curve) in self.spec.curves.iter().enumerate() {
            // The bars at one x are drawn next to each other.
            let offset = match bars {
                true => bar_place(index, count),
                false => 0.0,
            };
            let place_of = |x: &str| Some(place_of(x)? + offset);
            let swept = self.swept(index, curve, place_of, &mut drawn);
            swept.draw(&curve.label, mark, &mut drawn);
            self.printed(&swept, curve, place_of, &mut drawn);
        }
        // The variation of the runs is drawn first, and printed values last.
        drawn.layers.sort_by_key(|layer| match layer.mark {
            Mark::Printed => 2,
            mark => u8::from(!mark.is_spread()),
        });
        drawn.points().next()?;
        let label = unit::axis_label(&drawn.y_name, &drawn.y_unit);
        let label = self.spec.y_label.clone().unwrap_or(label);
        let heights: Vec<f64> = drawn.points().flat_map(PlotPoint::reach).collect();
        let heights = heights.into_iter();
        let y = match self.spec.y_scale {
            Scale::Log => Axis::logarithmic(label, drawn.points().map(|it| it.y), 7),
            // The axis of bars includes 0.
            Scale::Linear if bars => Axis::around(label, heights.chain([0.0]), 7),
            Scale::Linear => Axis::around(label, heights, 7),
        };
        Some(Plot {
            x: self.sweep_axis(&x_name, &xs, &along),
            y,
            layers: drawn.layers,
        })
    }

    /// Values of the runs of a curve at each of its points.
    fn swept(
        &self,
        index: usize,
        curve: &Curve,
        place_of: impl Fn(&str) -> Option<f64>,
        drawn: &mut LayerSet,
    ) -> SweptCurve {
        let series = curve.series.as_deref().unwrap_or("all");
        let metric = curve.metric.as_deref().unwrap_or_default();
        let mut at = Vec::new();
        for (point, records) in self.curve_points(curve) {
            let (found, own) = values(&records, series, metric);
            let wanted = unit::in_figures(curve.unit.as_deref(), &own);
            let (found, unit) = in_unit((found, own.clone()), wanted);
            if let (false, Some(x)) = (found.is_empty(), place_of(&axis(&point).1)) {
                at.push((x, alone(&found)));
                drawn.y_unit = unit;
                drawn.y_name = unit::readable(metric);
            }
        }
        at.sort_by(|a, b| a.0.total_cmp(&b.0));
        SweptCurve { curve: index, at }
    }

    /// Adds the printed points of a curve, and behind them the prediction band for one more run.
    fn printed(
        &self,
        swept: &SweptCurve,
        curve: &Curve,
        place_of: impl Fn(&str) -> Option<f64>,
        drawn: &mut LayerSet,
    ) {
        let (Some(place), Some(printed)) = (&self.spec.published, &curve.printed) else {
            return;
        };
        let metric = curve.metric.as_deref().unwrap_or_default();
        let rule = match self.is_bounded(curve) {
            true => Rule::Quantiles,
            false => Rule::OneMoreRun,
        };
        let rows = self.reference.published(place);
        let rows = rows.filter(|row| row.series == *printed && row.metric == metric);
        let found = rows.filter_map(|row| {
            let x = place_of(&row.x)?;
            let runs = swept.at.iter().find(|(other, _)| *other == x);
            let runs = runs.map_or(&[][..], |(_, runs)| runs);
            let unit = drawn.y_unit.as_str();
            let judgement = compare::judge_in(runs, unit, row, rule);
            let span = judgement.band.map(|band| (band.low, band.high));
            let y = row.value_in(unit)?;
            Some((PlotPoint { x, y, span }, judgement))
        });
        let (points, judged): (Vec<PlotPoint>, Vec<Judgement>) = found.unzip();
        let label = format!("{}, printed{}", curve.label, ranks(&judged));
        let bands: Vec<PlotPoint> = points
            .iter()
            .filter(|it| it.span.is_some())
            .copied()
            .collect();
        let band = format!("{}, one more run", curve.label);
        drawn.push(band, swept.curve, Mark::OneMore, bands);
        let bare = points.iter().map(|it| PlotPoint::new(it.x, it.y)).collect();
        drawn.push(label, swept.curve, Mark::Printed, bare);
    }

    /// Whether a table compares the same quantity by quantiles, because it is bounded.
    fn is_bounded(&self, curve: &Curve) -> bool {
        let rows = self
            .results
            .spec
            .tables
            .iter()
            .flat_map(|table| &table.rows);
        let mut same = rows.filter(|row| row.series == curve.series && row.metric == curve.metric);
        same.any(|row| row.near_bound)
    }

    /// Title of the horizontal axis, and all x values of the curves in order of appearance.
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

    /// Points of a curve over a sweep with their records. The points omit the sweeps that the curve
    /// or the figure fixes.
    pub(super) fn curve_points<'r>(&'r self, curve: &'r Curve) -> Vec<(Point, Vec<&'r RunRecord>)> {
        let experiment = curve.experiment.as_deref().unwrap_or(self.experiment);
        let fixed = joined(&self.spec.at_point, &curve.at_point);
        let points = by_point(self.results, experiment).into_iter();
        points
            .filter_map(|(point, records)| Some((within(point, &fixed)?, records)))
            .collect()
    }

    fn sweep_axis(&self, x_name: &str, xs: &[String], along: &AxisPositions) -> Axis {
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
        let label = self.spec.x_label.clone().or(name);
        let label = label.unwrap_or_else(|| "x".to_owned());
        let unit = self.spec.x_unit.map(|_| "%").or(along.unit);
        let unit = unit.map_or(String::new(), |unit| format!(" ({unit})"));
        let (low, high, log) = match self.spec.kind {
            // Bars need space at both sides of their x.
            FigureKind::Bars => (-0.55, along.places.len() as f64 - 0.45, false),
            _ => along.ends(self.spec.x_scale),
        };
        Axis {
            // The unit is removed from the label, so that it is not repeated.
            label: label.strip_suffix(&unit).unwrap_or(&label).to_owned() + &unit,
            low,
            high,
            ticks: self.sweep_ticks(xs, along),
            cut: false,
            log,
        }
    }

    /// A tick at each position, from the lower end to the upper.
    fn sweep_ticks(&self, xs: &[String], along: &AxisPositions) -> Vec<(f64, String)> {
        let tick = |(at, x): (&f64, &String)| {
            let text = match (self.spec.x_unit, along.unit, x.parse::<f64>()) {
                (Some(XUnit::Percent), _, Ok(share)) => digits(share * 100.0, 6),
                (_, Some(_), _) => digits(*at, 6),
                _ => x.clone(),
            };
            (*at, text)
        };
        let mut ticks: Vec<(f64, String)> = along.places.iter().zip(xs).map(tick).collect();
        ticks.sort_by(|one, other| one.0.total_cmp(&other.0));
        ticks.dedup_by(|one, other| one.0 == other.0);
        ticks
    }

    /// Plot of transmitted segments and received acknowledgements over time. Numbers are counted
    /// from 1, and shown modulo the configured value.
    pub(super) fn sequence(&self) -> Result<Option<Plot>, SeriesError> {
        let flow = self.spec.flow.as_deref().unwrap_or_default();
        // The probe counts segments from 0, and the plot from 1. The probe of acknowledgements
        // reports the first segment that is not covered, counted from 0, which equals the last
        // covered segment, counted from 1.
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
                Mark::Discs,
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
                    curve: colour,
                    dash: 0,
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
            Some(modulo) => Axis::between(label, 0.0, modulo as f64, 11),
            None => Axis::around(label, all().map(|point| point.y), 8),
        };
        let x = self.time_axis(all().map(|point| point.x));
        Ok(Some(Plot { x, y, layers }))
    }
}
