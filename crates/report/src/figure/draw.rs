//! Draws a plot with the library's chart, axes, mesh and legend.

use plotters::coord::Shift;
use plotters::element::{DashedPathElement, Drawable, PointCollection};
use plotters::prelude::*;
use plotters::style::FontStyle;
use plotters_backend::{BackendCoord, DrawingErrorKind};

use super::canvas::{
    self, Drawn, GRID, INK, PAPER, SCALE, Sheet, Side, colour, failed, stroke, style,
};
use super::plot::{Axis, Layer, Mark, Plot, PlotPoint};

/// Shown pixels. A page of 400 pixels shows it at two thirds of its size, so that its text stays readable.
const WIDTH: u32 = 560;
const CHART: u32 = 330;
const LINE: u32 = 23;
/// Size of the text; the library writes letters of four fifths of it.
const TEXT: i32 = 17;
/// Characters of a headline that fit, and of a legend's column.
pub(super) const HEADLINE: usize = 58;
const COLUMN: usize = 28;

/// Dashes and gaps of lines, drawn pixels: lines are told apart without their colours.
const DASHES: [Option<(i32, i32)>; 6] = [
    None,
    Some((18, 8)),
    Some((4, 6)),
    Some((30, 8)),
    Some((10, 5)),
    Some((4, 14)),
];

type Svg<'a> = SVGBackend<'a>;
type Chart<'a, 'b> = ChartContext<'a, Svg<'b>, Cartesian2d<Axis, Axis>>;

/// The plot as an SVG document.
pub fn svg(plot: &Plot, title: &str) -> Result<String, String> {
    let headline = wrapped(title, HEADLINE);
    let named: Vec<&Layer> = plot
        .layers
        .iter()
        .filter(|it| !it.label.is_empty())
        .collect();
    let fits = named.iter().all(|it| it.label.chars().count() <= COLUMN);
    let columns = if fits && named.len() > 1 { 2 } else { 1 };
    let rows = named.len().div_ceil(columns);
    let height = CHART + LINE * (headline.len() + rows) as u32 + 12;
    canvas::sheet(title, WIDTH, height, |sheet| {
        let head = style(TEXT + 1, INK, Side::After);
        let head = TextStyle {
            font: head.font.style(FontStyle::Bold),
            ..head
        };
        for (line, text) in headline.iter().enumerate() {
            canvas::write(sheet, text, (12, 16 + LINE as i32 * line as i32), &head)?;
        }
        let below = |lines: usize| (6 + LINE * lines as u32) * SCALE as u32;
        let (_, body) = sheet.split_vertically(below(headline.len()));
        let (top, body) = body.split_vertically(below(rows));
        let places = top.split_evenly((1, columns));
        for (place, layers) in places.iter().zip(named.chunks(rows.max(1))) {
            legend(place, layers)?;
        }
        chart(&body, plot)
    })
}

/// Words in lines of no more than so many characters, where they have gaps.
pub(crate) fn wrapped(text: &str, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + word.chars().count() < most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Names of layers, each with a sample, in an area of their own.
fn legend(place: &Sheet<'_>, layers: &[&Layer]) -> Drawn {
    let mut chart = ChartBuilder::on(place)
        .build_cartesian_2d(0.0..1.0, 0.0..1.0)
        .map_err(failed)?;
    for layer in layers {
        let nothing = std::iter::empty::<Circle<(f64, f64), i32>>();
        let named = chart.draw_series(nothing).map_err(failed)?;
        let (mark, curve) = (layer.mark, layer.curve);
        let lined = matches!(mark, Mark::Line | Mark::Step | Mark::Means);
        let line = lined.then_some(layer.dash);
        named
            .label(layer.label.as_str())
            .legend(move |(x, y)| Sign {
                at: (x + 17 * SCALE, y),
                mark,
                curve,
                line,
            });
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::Coordinate(10 * SCALE, 0))
        .margin(0)
        .legend_area_size(42 * SCALE)
        .label_font(("sans-serif", TEXT * SCALE).into_font().color(&INK))
        .draw()
        .map_err(failed)
}

/// The pen of a layer.
fn pen(mark: Mark, curve: usize) -> ShapeStyle {
    let colour = colour(curve);
    match mark {
        Mark::Runs => colour.mix(0.4).filled(),
        Mark::OneMore | Mark::Band => colour.mix(0.2).stroke_width(9 * SCALE as u32),
        Mark::Single => ShapeStyle {
            color: colour.mix(0.6),
            ..stroke(colour, 7)
        },
        Mark::Dots | Mark::Discs => colour.filled(),
        Mark::Crosses => stroke(colour, 9),
        Mark::Line | Mark::Step | Mark::Means | Mark::SeparateMeans | Mark::Printed => {
            stroke(colour, 17)
        }
    }
}

/// The corners of a curve's marker, drawn pixels around its place.
fn corners(mark: Mark, curve: usize) -> Vec<BackendCoord> {
    let circle = |radius: f64| -> Vec<BackendCoord> {
        let corner = |at: u32| {
            let angle = f64::from(at) * std::f64::consts::TAU / 16.0;
            let along = |part: f64| (radius * f64::from(SCALE) * part).round() as i32;
            (along(angle.cos()), along(angle.sin()))
        };
        (0..16).map(corner).collect()
    };
    let scaled = |corners: &[BackendCoord]| {
        corners
            .iter()
            .map(|(x, y)| (x * SCALE, y * SCALE))
            .collect()
    };
    match (mark, curve % 6) {
        (Mark::Dots, _) => circle(1.2),
        (Mark::Runs, _) => circle(1.8),
        (Mark::Discs, _) => circle(3.0),
        (Mark::Printed, _) => scaled(&[(0, -7), (7, 0), (0, 7), (-7, 0)]),
        (_, 0) => circle(4.5),
        (_, 1) => scaled(&[(-4, -4), (4, -4), (4, 4), (-4, 4)]),
        (_, 2) => scaled(&[(0, -6), (5, 4), (-5, 4)]),
        (_, 3) => scaled(&[(0, 6), (5, -4), (-5, -4)]),
        (_, 4) => scaled(&[(-2, -6), (2, -6), (2, 6), (-2, 6)]),
        _ => scaled(&[(-6, -2), (6, -2), (6, 2), (-6, 2)]),
    }
}

/// A layer's marker at a place of a chart; in the legend, with a piece of its line.
struct Sign<C> {
    at: C,
    mark: Mark,
    curve: usize,
    /// The dash of the line, where there is one.
    line: Option<usize>,
}

impl<'a, C> PointCollection<'a, C> for &'a Sign<C> {
    type Point = &'a C;
    type IntoIter = std::iter::Once<&'a C>;

    fn point_iter(self) -> Self::IntoIter {
        std::iter::once(&self.at)
    }
}

impl<C, DB: DrawingBackend> Drawable<DB> for Sign<C> {
    fn draw<I: Iterator<Item = BackendCoord>>(
        &self,
        mut at: I,
        backend: &mut DB,
        parent: (u32, u32),
    ) -> Result<(), DrawingErrorKind<DB::ErrorType>> {
        let Some((x, y)) = at.next() else {
            return Ok(());
        };
        let (mark, pen) = (self.mark, pen(self.mark, self.curve));
        let half = 17 * SCALE;
        if let Some(dash) = self.line {
            let ends = [(x - half, y), (x + half, y)];
            let (size, gap) = DASHES[dash % DASHES.len()].unwrap_or((2 * half, 0));
            let dashes = DashedPathElement::new(std::iter::empty::<C>(), size, gap, pen);
            dashes.draw(ends.into_iter(), backend, parent)?;
        }
        if matches!(mark, Mark::Band | Mark::OneMore) {
            let (upper, lower) = ((x - half, y - 6 * SCALE), (x + half, y + 6 * SCALE));
            return backend.draw_rect(upper, lower, &pen, true);
        }
        let mut path: Vec<BackendCoord> = corners(mark, self.curve);
        path.iter_mut().for_each(|it| *it = (it.0 + x, it.1 + y));
        match mark {
            Mark::Line | Mark::Step | Mark::Single => Ok(()),
            Mark::Crosses => [-1, 1].into_iter().try_for_each(|side| {
                let arm = 2 * SCALE;
                backend.draw_path([(x - arm, y - side * arm), (x + arm, y + side * arm)], &pen)
            }),
            Mark::Printed => {
                backend.fill_polygon(path.iter().copied(), &PAPER)?;
                path.push(path[0]);
                backend.draw_path(path, &pen)
            }
            _ => backend.fill_polygon(path, &pen),
        }
    }
}

/// Axes, mesh and layers.
fn chart(body: &DrawingArea<Svg<'_>, Shift>, plot: &Plot) -> Drawn {
    let widest = plot
        .y
        .ticks
        .iter()
        .map(|(_, text)| text.chars().count())
        .max();
    let mut chart = ChartBuilder::on(body)
        .margin_top(8 * SCALE)
        .margin_right(18 * SCALE)
        .x_label_area_size(56 * SCALE)
        .y_label_area_size((36 + 8 * widest.unwrap_or(1) as i32) * SCALE)
        .build_cartesian_2d(plot.x.clone(), plot.y.clone())
        .map_err(failed)?;
    let font = || ("sans-serif", TEXT * SCALE).into_font().color(&INK);
    chart
        .configure_mesh()
        .bold_line_style(stroke(GRID, 10))
        .light_line_style(TRANSPARENT)
        .axis_style(stroke(INK, 10))
        .label_style(font())
        .axis_desc_style(font())
        .x_desc(plot.x.label.as_str())
        .y_desc(plot.y.label.as_str())
        .draw()
        .map_err(failed)?;
    plot.layers
        .iter()
        .try_for_each(|layer| draw(&mut chart, layer))
}

fn draw(chart: &mut Chart<'_, '_>, layer: &Layer) -> Drawn {
    let pen = pen(layer.mark, layer.curve);
    let spans = || {
        let points = layer.points.iter();
        points.filter_map(|it| Some((it.x, it.y, it.span?)))
    };
    match layer.mark {
        Mark::Line | Mark::Step | Mark::Single => line(chart, layer, pen),
        Mark::Band => {
            let upper = spans().map(|(x, _, (_, high))| (x, high));
            let mut corners: Vec<(f64, f64)> = upper.collect();
            let lower: Vec<(f64, f64)> = spans().map(|(x, _, (low, _))| (x, low)).collect();
            corners.extend(lower.into_iter().rev());
            done(chart.draw_series([Polygon::new(corners, pen.filled())]))
        }
        Mark::OneMore => {
            let bar = |(x, _, (low, high))| PathElement::new([(x, low), (x, high)], pen);
            done(chart.draw_series(spans().map(bar)))
        }
        Mark::Means | Mark::SeparateMeans => {
            if layer.mark == Mark::Means {
                line(chart, layer, pen)?;
            }
            let wide = 8 * SCALE as u32;
            let bar = |(x, y, (low, high))| ErrorBar::new_vertical(x, low, y, high, pen, wide);
            done(chart.draw_series(spans().map(bar)))?;
            markers(chart, layer)
        }
        Mark::Dots | Mark::Crosses | Mark::Discs | Mark::Runs | Mark::Printed => {
            markers(chart, layer)
        }
    }
}

fn line(chart: &mut Chart<'_, '_>, layer: &Layer, pen: ShapeStyle) -> Drawn {
    let corners = layer.corners();
    match DASHES[layer.dash % DASHES.len()] {
        None => done(chart.draw_series(LineSeries::new(corners, pen))),
        Some((size, gap)) => {
            done(chart.draw_series(DashedLineSeries::new(corners, size, gap, pen)))
        }
    }
}

fn markers(chart: &mut Chart<'_, '_>, layer: &Layer) -> Drawn {
    let (mark, curve) = (layer.mark, layer.curve);
    let marker = |it: &PlotPoint| Sign {
        at: (it.x, it.y),
        mark,
        curve,
        line: None,
    };
    done(chart.draw_series(layer.points.iter().map(marker)))
}

fn done<T, E: std::fmt::Display>(drawn: Result<T, E>) -> Drawn {
    drawn.map(drop).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_headline_goes_over_several_lines() {
        assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
        assert_eq!(wrapped("unbreakable", 4), ["unbreakable"]);
        assert!(wrapped("", 4).is_empty());
    }
}
