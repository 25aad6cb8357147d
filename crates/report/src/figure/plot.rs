//! Plots as data: axes with ticks, and layers of points.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;

use crate::compare::digits;

/// Curves in a coordinate system.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// Layers in drawing order, from back to front.
    pub layers: Vec<Layer>,
}

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Label with unit.
    pub label: String,
    /// Lower end of the axis.
    pub low: f64,
    /// Upper end of the axis, greater than `low`.
    pub high: f64,
    /// Positions and labels of the ticks.
    pub ticks: Vec<(f64, String)>,
    /// True if all values are positive and the axis starts above 0, so that differences look larger
    /// than they are.
    pub cut: bool,
    /// True if the axis is logarithmic; `low` is then positive.
    pub log: bool,
}

/// Points that are drawn in the same way.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    /// Name in the legend; empty if the layer is not listed there.
    pub label: String,
    /// Index of the curve, counted from 0, which determines colour and marker.
    pub curve: usize,
    /// Dash pattern of the line; 0 is solid.
    pub dash: usize,
    /// Drawing style.
    pub mark: Mark,
    /// Points, in ascending order of x for lines.
    pub points: Vec<PlotPoint>,
}

/// Drawing style of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A line through the points.
    Line,
    /// A staircase: each value is held until the next point.
    Step,
    /// Dots.
    Dots,
    /// Small crosses.
    Crosses,
    /// Discs.
    Discs,
    /// A line through markers with intervals.
    Means,
    /// Markers with intervals, for x values without an order.
    SeparateMeans,
    /// Bars from 0 with intervals.
    Bars,
    /// Faint dots for single runs.
    Runs,
    /// Faint bars over the intervals, for the prediction of one more run.
    OneMore,
    /// An area over the intervals.
    Band,
    /// A thin faint line for one of several runs.
    Single,
    /// Hollow diamonds for printed values.
    Printed,
}

impl Mark {
    /// Whether the layer is drawn in the background to show the variation of the runs.
    pub fn is_spread(self) -> bool {
        matches!(self, Mark::Runs | Mark::OneMore | Mark::Band | Mark::Single)
    }
}

/// A point of a layer, with an optional interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlotPoint {
    /// Position along x.
    pub x: f64,
    /// Position along y.
    pub y: f64,
    /// Lower and upper end of its interval.
    pub span: Option<(f64, f64)>,
}

impl PlotPoint {
    /// A point without an interval.
    pub const fn new(x: f64, y: f64) -> Self {
        Self { x, y, span: None }
    }

    /// Smallest and largest y of the point and its interval.
    pub fn reach(&self) -> [f64; 2] {
        let (low, high) = self.span.unwrap_or((self.y, self.y));
        [low.min(self.y), high.max(self.y)]
    }
}

impl Layer {
    /// Corners of the line through the points; for held values, those of a staircase.
    pub fn corners(&self) -> Vec<(f64, f64)> {
        let mut corners: Vec<(f64, f64)> = Vec::with_capacity(2 * self.points.len());
        for point in &self.points {
            if let (Mark::Step, Some(&(_, before))) = (self.mark, corners.last()) {
                corners.push((point.x, before));
            }
            corners.push((point.x, point.y));
        }
        corners.dedup();
        corners
    }
}

impl Axis {
    /// An axis from `low` to `high` with up to `most` ticks at round numbers.
    pub fn between(label: String, low: f64, high: f64, most: usize) -> Axis {
        let (low, high) = match high > low {
            true => (low, high),
            false => (low - 0.5, low + 0.5),
        };
        let coordinate = RangedCoordf64::from(low..high);
        let ticks = Ranged::key_points(&coordinate, most).into_iter();
        Axis {
            label,
            low,
            high,
            ticks: ticks.map(|at| (at, digits(at, 6))).collect(),
            cut: false,
            log: false,
        }
    }

    /// An axis that contains the values, with a margin. It starts at 0, unless all values are far
    /// from 0.
    pub fn around(label: String, values: impl Iterator<Item = f64>, most: usize) -> Axis {
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
            (low.min(v), high.max(v))
        });
        if low > high {
            return Axis::between(label, 0.0, 1.0, most);
        }
        let margin = match high > low {
            true => 0.06 * (high - low),
            false => high.abs().max(1.0) * 0.1,
        };
        if low >= 0.0 && low < 0.6 * high {
            return Axis::between(label, 0.0, high + margin, most);
        }
        Axis {
            cut: low > 0.0,
            ..Axis::between(label, low - margin, high + margin, most)
        }
    }

    /// A logarithmic axis that contains the values, with ticks at 1, 2 and 5 times powers of ten,
    /// or only at these powers. If a value is not positive, the axis is linear.
    pub fn logarithmic(label: String, values: impl Iterator<Item = f64>, most: usize) -> Axis {
        let values: Vec<f64> = values.collect();
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if !(low > 0.0 && high > low) {
            return Axis::around(label, values.into_iter(), most);
        }
        let margin = (high / low).powf(0.06);
        let (low, high) = (low / margin, high * margin);
        // Derived from the decimal text, because a logarithm may differ between platforms.
        let power = |value: f64| -> i32 {
            let text = format!("{value:e}");
            text.split_once('e')
                .map_or(0, |(_, power)| power.parse().unwrap_or(0))
        };
        let at = |step: u32, power: i32| format!("{step}e{power}").parse::<f64>().unwrap_or(0.0);
        let ticks = |steps: &[u32]| -> Vec<(f64, String)> {
            let all = (power(low)..=power(high))
                .flat_map(|power| steps.iter().map(move |step| at(*step, power)));
            let inside = all.filter(|at| (low..=high).contains(at));
            inside.map(|at| (at, digits(at, 6))).collect()
        };
        let steps: [&[u32]; 2] = [&[1, 2, 5], &[1]];
        let tried = steps.map(ticks);
        let few = tried.iter().find(|ticks| (2..=most).contains(&ticks.len()));
        let ticks = few
            .unwrap_or(&tried[usize::from(tried[1].len() > 1)])
            .clone();
        Axis {
            label,
            low,
            high,
            ticks,
            cut: false,
            log: true,
        }
    }

    /// Relative position of a value: 0 at the lower end, 1 at the upper.
    pub fn part(&self, value: f64) -> f64 {
        let along = |value: f64| match self.log {
            // On a logarithmic axis, values that are not positive are placed at the lower end.
            true => value.max(self.low).ln(),
            false => value,
        };
        let low = along(self.low);
        (along(value) - low) / (along(self.high) - low)
    }

    /// Whether the tick labels are names without an order, and not numbers.
    pub fn has_names(&self) -> bool {
        self.ticks
            .iter()
            .any(|(_, text)| text.parse::<f64>().is_err())
    }

    /// The axis without tick labels that would overlap the previous one, if the axis has a length
    /// of `length` characters.
    #[must_use]
    pub fn thinned(mut self, length: f64) -> Axis {
        let middles: Vec<f64> = self.ticks.iter().map(|(at, _)| self.part(*at)).collect();
        let mut free = f64::NEG_INFINITY;
        for ((_, text), part) in self.ticks.iter_mut().zip(middles) {
            let half = text.chars().count() as f64 / 2.0;
            let middle = part * length;
            match middle - half < free {
                true => text.clear(),
                false => free = middle + half + 0.7,
            }
        }
        self
    }
}

/// Implements the axis for the drawing library.
impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        match self.log {
            true => RangedCoordf64::from(0.0..1.0).map(&self.part(*value), limit),
            false => RangedCoordf64::from(self.low..self.high).map(value, limit),
        }
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        match hint.weight().allow_light_points() {
            true => Vec::new(),
            false => self.ticks.iter().map(|(at, _)| *at).collect(),
        }
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Axis {
    fn format(value: &f64) -> String {
        digits(*value, 6)
    }

    fn format_ext(&self, value: &f64) -> String {
        let tick = self.ticks.iter().find(|(at, _)| at == value);
        tick.map_or_else(|| Self::format(value), |(_, text)| text.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, text)| text.as_str()).collect()
    }

    #[test]
    fn ticks_stand_at_round_numbers() {
        let between = |low, high, most| Axis::between(String::new(), low, high, most);
        let tens = between(50.0, 150.0, 11);
        assert_eq!(tens.ticks.len(), 11, "{:?}", texts(&tens));
        assert_eq!((texts(&tens)[0], texts(&tens)[1]), ("50", "60"));
        assert_eq!(texts(&between(0.0, 1.0, 4)), ["0", "0.5", "1"]);
        assert_eq!(texts(&between(0.0, 13000.0, 4)), ["0", "5000", "10000"]);
    }

    #[test]
    fn an_axis_begins_at_zero_or_says_that_it_does_not() {
        let around = |values: &[f64]| Axis::around("y".to_owned(), values.iter().copied(), 5);
        let usual = around(&[3.0, 20.0]);
        assert_eq!((usual.low, usual.cut), (0.0, false));
        let cut = around(&[0.98, 0.99]);
        assert!(cut.low > 0.9 && cut.cut);
        let below = around(&[-3.0, 20.0]);
        assert!(below.low < -3.0 && !below.cut);
        let single = around(&[4.0]);
        assert!(single.low < 4.0 && single.high > 4.0);
        assert!(around(&[]).high > 0.0);
    }

    #[test]
    fn texts_that_would_run_into_each_other_are_left_out() {
        let ticks = [1.0, 2.0, 5.0, 10.0, 60.0].map(|at| (at, digits(at, 6)));
        let axis = Axis {
            ticks: ticks.to_vec(),
            ..Axis::between(String::new(), 0.0, 60.0, 5)
        };
        // One character per unit: the label at 1 extends to 1.5, and that at 2 begins there.
        assert_eq!(
            texts(&axis.clone().thinned(60.0)),
            ["1", "", "5", "10", "60"]
        );
        assert_eq!(texts(&axis.clone().thinned(600.0)), texts(&axis));
        assert_eq!(axis.ticks.len(), axis.thinned(1.0).ticks.len());
    }

    #[test]
    fn equal_ratios_are_equally_long_on_a_logarithmic_axis() {
        let axis = Axis {
            log: true,
            ..Axis::between(String::new(), 1.0, 1000.0, 5)
        };
        let parts = [1.0, 10.0, 100.0, 1000.0].map(|at| (axis.part(at) * 3.0).round());
        assert_eq!(parts, [0.0, 1.0, 2.0, 3.0]);
        assert_eq!(axis.map(&10.0, (0, 300)), 100);
    }

    #[test]
    fn a_logarithmic_axis_has_round_ticks_and_needs_values_above_zero() {
        let axis = |values: &[f64]| Axis::logarithmic(String::new(), values.iter().copied(), 7);
        assert_eq!(texts(&axis(&[3.0, 60.0])), ["5", "10", "20", "50"]);
        assert_eq!(
            texts(&axis(&[0.002, 90.0])),
            ["0.01", "0.1", "1", "10", "100"]
        );
        let wide = axis(&[1.0, 1000.0]);
        assert!(wide.log && wide.low < 1.0 && wide.high > 1000.0);
        // An interval that extends below 0 ends at the edge of the plot.
        assert_eq!(wide.part(-4.0), 0.0);
        assert!(!axis(&[0.0, 60.0]).log);
    }

    #[test]
    fn stairs_hold_each_value_until_the_next() {
        let layer = |mark| Layer {
            label: String::new(),
            curve: 0,
            dash: 0,
            mark,
            points: [(0.0, 5.0), (4.0, 9.0), (7.0, 9.0)]
                .map(|(x, y)| PlotPoint::new(x, y))
                .to_vec(),
        };
        assert_eq!(layer(Mark::Line).corners().len(), 3);
        assert_eq!(
            layer(Mark::Step).corners(),
            [(0.0, 5.0), (4.0, 5.0), (4.0, 9.0), (7.0, 9.0)]
        );
    }
}
