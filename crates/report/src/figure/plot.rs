//! A plot as data: axes with their ticks, and layers of points.

/// Curves in a plane.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// What is drawn, the first below.
    pub layers: Vec<Layer>,
}

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Its text, unit included.
    pub label: String,
    /// Its lower end.
    pub low: f64,
    /// Its upper end, above `low`.
    pub high: f64,
    /// Where its ticks stand, and their texts.
    pub ticks: Vec<(f64, String)>,
}

/// Points of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    /// Its name in the legend.
    pub label: String,
    /// Its colour, as an index of the palette.
    pub colour: usize,
    /// How it is drawn.
    pub mark: Mark,
    /// The points, in rising order of x for lines.
    pub points: Vec<PlotPoint>,
}

/// How the points of a layer are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A line through them.
    Line,
    /// Each stands until the next.
    Step,
    /// Each stands until the next, dashed.
    DashedStep,
    /// Small discs.
    Dots,
    /// Small crosses.
    Crosses,
    /// Discs.
    SmallDiscs,
    /// Larger discs.
    Discs,
    /// A line through discs with their intervals.
    Means,
    /// Discs with their intervals, where what stands along x has no order.
    SeparateMeans,
    /// Hollow diamonds: what was printed.
    Printed,
}

impl Mark {
    /// Whether its points are means with intervals.
    pub fn is_of_means(self) -> bool {
        matches!(self, Mark::Means | Mark::SeparateMeans)
    }
}

/// A point of a layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlotPoint {
    /// Along x.
    pub x: f64,
    /// Along y.
    pub y: f64,
    /// Half the width of its interval.
    pub half: Option<f64>,
}

impl PlotPoint {
    /// A point without an interval.
    pub const fn new(x: f64, y: f64) -> Self {
        Self { x, y, half: None }
    }
}

/// The next larger of 1, 2, 5, 10, 20, 50, ... and so on down.
fn round_step(rough: f64) -> f64 {
    let mut magnitude = 1.0;
    while magnitude > rough {
        magnitude /= 10.0;
    }
    while magnitude * 10.0 <= rough {
        magnitude *= 10.0;
    }
    let factor = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .find(|factor| magnitude * factor >= rough * (1.0 - 1e-9));
    magnitude * factor.unwrap_or(10.0)
}

impl Axis {
    /// An axis from `low` to `high` with about `wanted` ticks at round numbers.
    pub fn between(label: String, low: f64, high: f64, wanted: usize) -> Axis {
        let (low, high) = if high > low {
            (low, high)
        } else {
            (low - 0.5, low + 0.5)
        };
        let step = round_step((high - low) / wanted.max(1) as f64);
        let mut decimals = 0;
        while decimals < 9
            && ((step * 10f64.powi(decimals)).round() / 10f64.powi(decimals) - step).abs()
                > step * 1e-6
        {
            decimals += 1;
        }
        let first = (low / step - 1e-9).ceil() as i64;
        let last = (high / step + 1e-9).floor() as i64;
        let ticks = (first..=last)
            .map(|k| {
                let at = k as f64 * step;
                (at, format!("{at:.*}", decimals as usize))
            })
            .collect();
        Axis {
            label,
            low,
            high,
            ticks,
        }
    }

    /// An axis around some values, from 0 where they are not far above it, with room at the ends.
    pub fn around(label: String, values: impl Iterator<Item = f64>, wanted: usize) -> Axis {
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
            (low.min(v), high.max(v))
        });
        if low > high {
            return Axis::between(label, 0.0, 1.0, wanted);
        }
        let margin = if high > low {
            0.06 * (high - low)
        } else {
            high.abs().max(1.0) * 0.1
        };
        let low = if low >= 0.0 && low < 0.6 * high {
            0.0
        } else {
            low - margin
        };
        Axis::between(label, low, high + margin, wanted)
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
        assert_eq!(
            texts(&Axis::between(String::new(), 50.0, 150.0, 10)),
            [
                "50", "60", "70", "80", "90", "100", "110", "120", "130", "140", "150"
            ]
        );
        assert_eq!(
            texts(&Axis::between(String::new(), 0.0, 1.0, 4)),
            ["0.0", "0.5", "1.0"]
        );
        assert_eq!(
            texts(&Axis::between(String::new(), 2.31, 2.36, 5)),
            ["2.31", "2.32", "2.33", "2.34", "2.35", "2.36"]
        );
        assert_eq!(
            texts(&Axis::between(String::new(), 0.0, 13000.0, 4)),
            ["0", "5000", "10000"]
        );
    }

    #[test]
    fn an_axis_begins_at_zero_unless_its_values_are_far_above() {
        assert_eq!(
            Axis::around(String::new(), [3.0, 20.0].into_iter(), 5).low,
            0.0
        );
        assert!(Axis::around(String::new(), [0.98, 0.99].into_iter(), 5).low > 0.9);
        assert!(Axis::around(String::new(), [-3.0, 20.0].into_iter(), 5).low < -3.0);
        let single = Axis::around(String::new(), [4.0].into_iter(), 5);
        assert!(single.low < 4.0 && single.high > 4.0);
        assert!(Axis::around(String::new(), std::iter::empty(), 5).high > 0.0);
    }
}
