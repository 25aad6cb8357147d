//! Cumulative distributions of a measure over all runs, or of the samples of a probe.

use anabranch_scenario::output::{Curve, CurveStyle, Scale};
use anabranch_scenario::records::SeriesError;

use super::Maker;
use super::curves::LayerSet;
use super::downsample::downsample;
use super::plot::{Axis, Mark, Plot, PlotPoint};
use crate::table::{alone, in_unit, values};
use crate::unit;

/// Values, each with its weight.
type Weighted = Vec<(f64, f64)>;

impl Maker<'_> {
    /// Distributions of all curves, and a sentence about how they were computed.
    pub(super) fn distribution(&self) -> Result<(Option<Plot>, String), SeriesError> {
        let mut drawn = LayerSet::default();
        for (index, curve) in self.spec.curves.iter().enumerate() {
            let found = match curve.probe {
                Some(_) => self.samples_of(curve, &mut drawn)?,
                None => self.measured(curve, &mut drawn),
            };
            let points = downsample(Mark::Step, cumulative(found));
            drawn.push(curve.label.clone(), index, Mark::Step, points);
            if let Some(layer) = drawn.layers.last_mut() {
                layer.dash = index;
            }
            self.printed_shares(curve, index, &mut drawn);
        }
        drawn.layers.sort_by_key(|it| it.mark == Mark::Printed);
        let made = match self.spec.curves.iter().any(|it| it.probe.is_some()) {
            true => format!(
                "Drawn from series/{}.parquet: the samples of all recorded runs.",
                self.experiment
            ),
            false => format!("Each run of experiment {} counts once.", self.experiment),
        };
        if drawn.points().next().is_none() {
            return Ok((None, made));
        }
        let label = unit::axis_label(&drawn.y_name, &drawn.y_unit);
        let label = self.spec.x_label.clone().unwrap_or(label);
        let along = drawn.points().map(|point| point.x);
        let share = self.spec.y_label.clone();
        let plot = Plot {
            x: match self.spec.x_scale {
                Scale::Log => Axis::logarithmic(label, along, 7),
                Scale::Linear => Axis::around(label, along, 7),
            },
            y: Axis::between(share.unwrap_or_else(|| "share".to_owned()), 0.0, 1.0, 6),
            layers: drawn.layers,
        };
        Ok((Some(plot), made))
    }

    /// Values of a measure in all runs.
    fn measured(&self, curve: &Curve, drawn: &mut LayerSet) -> Weighted {
        let series = curve.series.as_deref().unwrap_or("all");
        let metric = curve.metric.as_deref().unwrap_or_default();
        let mut all = Weighted::new();
        for (_, records) in self.curve_points(curve) {
            let (found, own) = values(&records, series, metric);
            let wanted = unit::in_figures(curve.unit.as_deref(), &own);
            let (found, unit) = in_unit((found, own.clone()), wanted);
            if !found.is_empty() {
                (drawn.y_unit, drawn.y_name) = (unit, unit::readable(metric));
            }
            all.extend(alone(&found).into_iter().map(|value| (value, 1.0)));
        }
        all
    }

    /// Samples of a probe in all recorded runs and members at a point.
    fn samples_of(&self, curve: &Curve, drawn: &mut LayerSet) -> Result<Weighted, SeriesError> {
        let held = matches!(curve.style, CurveStyle::Step | CurveStyle::DashedStep);
        let mut all = Weighted::new();
        for series in self.series_of(curve)?.iter().flatten() {
            let own = anabranch_scenario::unit::of_probe(&series.probe);
            let wanted = unit::in_figures(curve.unit.as_deref(), own);
            let shown = unit::shown(&series.probe, wanted, self.spec.segment_size);
            (drawn.y_unit, drawn.y_name) = (shown.name.to_owned(), unit::readable(&series.probe));
            let points = self.cut(series, shown.divisor, held);
            match held {
                true => {
                    let stands = points.windows(2).map(|it| (it[0].y, it[1].x - it[0].x));
                    all.extend(stands);
                }
                false => all.extend(points.iter().map(|it| (it.y, 1.0))),
            }
        }
        Ok(all)
    }

    /// Adds the printed points of a curve: x is a value, and y the share of values up to it.
    fn printed_shares(&self, curve: &Curve, index: usize, drawn: &mut LayerSet) {
        let (Some(place), Some(printed)) = (&self.spec.published, &curve.printed) else {
            return;
        };
        let name = curve.probe.as_ref().or(curve.metric.as_ref());
        let rows = self.reference.published(place);
        let rows = rows.filter(|row| row.series == *printed && Some(&row.metric) == name);
        let points = rows.filter_map(|row| {
            let share = match row.unit.as_str() {
                "%" => row.value / 100.0,
                _ => row.value,
            };
            Some(PlotPoint::new(row.x.parse().ok()?, share))
        });
        let label = format!("{}, printed", curve.label);
        drawn.push(label, index, Mark::Printed, points.collect());
    }
}

/// Cumulative share of the total weight at each value; the first is 0.
fn cumulative(mut values: Weighted) -> Vec<PlotPoint> {
    values.retain(|(value, weight)| value.is_finite() && *weight > 0.0);
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let whole: f64 = values.iter().map(|(_, weight)| weight).sum();
    let mut points: Vec<PlotPoint> = Vec::new();
    let mut sum = 0.0;
    for same in values.chunk_by(|a, b| a.0 == b.0) {
        if points.is_empty() {
            points.push(PlotPoint::new(same[0].0, 0.0));
        }
        sum += same.iter().map(|(_, weight)| weight).sum::<f64>();
        points.push(PlotPoint::new(same[0].0, sum / whole));
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_by_weight() {
        let points = cumulative(vec![
            (5.0, 1.0),
            (2.0, 2.0),
            (5.0, 1.0),
            (9.0, 4.0),
            (7.0, 0.0),
        ]);
        let plain: Vec<(f64, f64)> = points.iter().map(|it| (it.x, it.y)).collect();
        assert_eq!(plain, [(2.0, 0.0), (2.0, 0.25), (5.0, 0.5), (9.0, 1.0)]);
        assert_eq!(cumulative(Vec::new()), []);
    }
}
