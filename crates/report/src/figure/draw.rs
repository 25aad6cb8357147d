//! Draws plots with the charts, axes and meshes of the drawing library, and adds a legend.

use plotters::coord::Shift;
use plotters::coord::ranged1d::ValueFormatter;
use plotters::element::{DashedPathElement, Drawable, PointCollection};
use plotters::prelude::*;
use plotters::style::FontStyle;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters_backend::{BackendCoord, DrawingErrorKind};

use super::canvas::{
    self, DrawResult, GRID, INK, PAPER, SCALE, Sheet, TextAlignment, colour, failed, stroke, style,
};
use super::curves::bar_width;
use super::plot::{Axis, Layer, Mark, Plot, PlotPoint};

/// Size in displayed pixels. A page of 400 pixels shows the figure at five sixths of this size,
/// with a font size of eleven pixels.
const WIDTH: u32 = 440;
const CHART: u32 = 320;
const LINE: i32 = 22;
/// Font size; the library draws letters at four fifths of it.
const TEXT: i32 = 17;
/// Maximum number of characters of a title, of a legend entry in one column, and of a legend entry
/// in two columns.
pub(super) const HEADLINE: usize = 46;
const COLUMN: usize = 50;
const HALF_COLUMN: usize = 21;
/// Width of a sample line in the legend, and of a character.
const SAMPLE: i32 = 46;
const LETTER: f64 = 8.0;
/// Margin to the left of the y label, and space between the label and the tick labels.
const EDGE: i32 = 8;
const LEFT: i32 = 30;
/// Margins to the right of the axes and below them, and maximum number of characters of a name
/// below the axis.
const RIGHT: i32 = 20;
const BELOW: i32 = 52;
const MAX_NAME: usize = 16;

/// Dashes and gaps of lines in drawn pixels, which distinguish lines without their colours.
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
    let legend = Legend::of(plot);
    let rows = headline.len() + legend.rows();
    let height = CHART as i32 + LINE * rows as i32 + 12 + hanging(&plot.x);
    canvas::sheet(title, WIDTH, height as u32, |sheet| {
        let head = style(TEXT + 1, INK, TextAlignment::After);
        let head = TextStyle {
            font: head.font.style(FontStyle::Bold),
            ..head
        };
        for (line, text) in (0..).zip(&headline) {
            canvas::write(sheet, text, (12, 16 + LINE * line), &head)?;
        }
        legend.draw(sheet, 6 + LINE * headline.len() as i32)?;
        let below = (10 + LINE * rows as i32) * SCALE;
        let (_, body) = sheet.split_vertically(below);
        chart(&body, plot)
    })
}

/// Additional space below the axis that names need and numbers do not, displayed pixels.
fn hanging(axis: &Axis) -> i32 {
    let longest = axis.ticks.iter().map(|(_, text)| text.chars().count());
    match axis.has_names() {
        true => (longest.max().unwrap_or(0).min(MAX_NAME) as f64 * LETTER) as i32 - 10,
        false => 0,
    }
}

/// Breaks the text at spaces into lines of up to `most` characters.
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

/// Legend layout: one entry per layer, in one or two columns, plus the remarks about the axes.
struct Legend<'p> {
    named: Vec<(&'p Layer, Vec<String>)>,
    columns: usize,
    /// True if the vertical axis does not start at 0.
    cut: bool,
}

impl<'p> Legend<'p> {
    fn of(plot: &'p Plot) -> Self {
        let named = plot.layers.iter().filter(|it| !it.label.is_empty());
        let named: Vec<&Layer> = named.collect();
        let short = |layer: &&Layer| layer.label.chars().count() <= HALF_COLUMN;
        let columns = match named.len() > 1 && named.iter().all(short) {
            true => 2,
            false => 1,
        };
        let lines = |layer: &'p Layer| (layer, wrapped(&layer.label, COLUMN));
        Self {
            named: named.into_iter().map(lines).collect(),
            columns,
            cut: plot.y.cut,
        }
    }

    /// Number of lines in a column.
    fn column(&self) -> usize {
        let lines: usize = self.named.iter().map(|(_, lines)| lines.len()).sum();
        lines.div_ceil(self.columns)
    }

    fn rows(&self) -> usize {
        self.column() + usize::from(self.cut)
    }

    fn draw(&self, sheet: &Sheet<'_>, top: i32) -> DrawResult {
        let text = style(TEXT, INK, TextAlignment::After);
        let middle = |row: usize| top + LINE * row as i32 + LINE / 2;
        let mut place = 0;
        for (layer, lines) in &self.named {
            let (column, row) = (place / self.column(), place % self.column());
            let left = 10 + (WIDTH as i32 / self.columns as i32) * column as i32;
            let lined = matches!(layer.mark, Mark::Line | Mark::Step | Mark::Means);
            let sign = Sign {
                at: ((left + 17) * SCALE, middle(row) * SCALE),
                mark: layer.mark,
                curve: layer.curve,
                line: lined.then_some(layer.dash),
            };
            sheet.draw(&sign).map_err(failed)?;
            for (line, words) in lines.iter().enumerate() {
                canvas::write(sheet, words, (left + SAMPLE, middle(row + line)), &text)?;
            }
            place += lines.len();
        }
        if self.cut {
            let at = (10 + SAMPLE, middle(self.column()));
            broken(sheet, (27, at.1))?;
            canvas::write(sheet, "the vertical axis does not begin at 0", at, &text)?;
        }
        Ok(())
    }
}

/// Draws the zigzag that marks a cut axis; positions in displayed pixels.
fn broken(sheet: &Sheet<'_>, (x, y): (i32, i32)) -> DrawResult {
    let scaled = |corners: &[(i32, i32)]| -> Vec<(i32, i32)> {
        let corners = corners.iter();
        corners
            .map(|(dx, dy)| ((x + dx) * SCALE, (y + dy) * SCALE))
            .collect()
    };
    let gap = PathElement::new(scaled(&[(0, -7), (0, 7)]), stroke(PAPER, 40));
    sheet.draw(&gap).map_err(failed)?;
    let zigzag = scaled(&[(0, -9), (0, -7), (-6, -3), (6, 3), (0, 7), (0, 9)]);
    sheet
        .draw(&PathElement::new(zigzag, stroke(INK, 13)))
        .map_err(failed)
}

/// Line style of a layer by its mark and curve.
fn pen(mark: Mark, curve: usize) -> ShapeStyle {
    let colour = colour(curve);
    match mark {
        Mark::Runs => colour.mix(0.5).filled(),
        Mark::OneMore | Mark::Band => colour.mix(0.22).stroke_width(12 * SCALE as u32),
        Mark::Single => ShapeStyle {
            color: colour.mix(0.6),
            ..stroke(colour, 7)
        },
        Mark::Dots | Mark::Discs | Mark::Bars => colour.filled(),
        Mark::Crosses => stroke(colour, 9),
        Mark::Line | Mark::Step | Mark::Means | Mark::SeparateMeans | Mark::Printed => {
            stroke(colour, 17)
        }
    }
}

/// Outline of the marker of a curve, in drawn pixels relative to its position.
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
        (Mark::Runs, _) => circle(2.6),
        (Mark::Discs, _) => circle(3.0),
        (Mark::Printed, _) => scaled(&[(0, -7), (7, 0), (0, 7), (-7, 0)]),
        (Mark::Bars, _) => scaled(&[(-6, -6), (6, -6), (6, 6), (-6, 6)]),
        (_, 0) => circle(4.5),
        (_, 1) => scaled(&[(-4, -4), (4, -4), (4, 4), (-4, 4)]),
        (_, 2) => scaled(&[(0, -6), (5, 4), (-5, 4)]),
        (_, 3) => scaled(&[(0, 6), (5, -4), (-5, -4)]),
        (_, 4) => scaled(&[(-2, -6), (2, -6), (2, 6), (-2, 6)]),
        _ => scaled(&[(-6, -2), (6, -2), (6, 2), (-6, 2)]),
    }
}

/// Marker of a layer at a position of the chart. In the legend, the marker is on a short piece of
/// the layer's line.
struct Sign<C> {
    at: C,
    mark: Mark,
    curve: usize,
    /// Dash pattern of the line, if the layer has one.
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

/// Draws the axes, mesh and layers of a plot.
fn chart(body: &DrawingArea<Svg<'_>, Shift>, plot: &Plot) -> DrawResult {
    let widest = plot.y.ticks.iter().map(|(_, text)| text.chars().count());
    let left = LEFT + (LETTER * widest.max().unwrap_or(1) as f64) as i32;
    let names = plot.x.has_names();
    let mut x = plot.x.clone();
    if !names {
        x = x.thinned(f64::from(WIDTH as i32 - EDGE - left - RIGHT) / LETTER);
    }
    let mut chart = ChartBuilder::on(body)
        .margin_top(8 * SCALE)
        .margin_left(EDGE * SCALE)
        .margin_right(RIGHT * SCALE)
        .x_label_area_size((BELOW + hanging(&plot.x)) * SCALE)
        .y_label_area_size(left * SCALE)
        .build_cartesian_2d(x.clone(), plot.y.clone())
        .map_err(failed)?;
    let font = || ("sans-serif", TEXT * SCALE).into_font().color(&INK);
    let shown = |at: &f64| match names {
        true => String::new(),
        false => x.format_ext(at),
    };
    chart
        .configure_mesh()
        .bold_line_style(stroke(GRID, 10))
        .light_line_style(TRANSPARENT)
        .axis_style(stroke(INK, 10))
        .label_style(font())
        .axis_desc_style(font())
        .x_label_formatter(&shown)
        .x_desc(plot.x.label.as_str())
        .y_desc(plot.y.label.as_str())
        .draw()
        .map_err(failed)?;
    let bars = plot
        .layers
        .iter()
        .filter(|it| it.mark == Mark::Bars)
        .count();
    plot.layers
        .iter()
        .try_for_each(|layer| draw(&mut chart, layer, bars))?;
    // The library returns positions relative to the whole drawing.
    let (_, top) = body.get_base_pixel();
    let place = |at: f64| {
        let (x, y) = chart.backend_coord(&(at, plot.y.low));
        (x / SCALE, (y - top) / SCALE)
    };
    if plot.y.cut {
        let (x, y) = place(plot.x.low);
        broken(body, (x, y - 14))?;
    }
    let hung = font()
        .transform(FontTransform::Rotate270)
        .pos(Pos::new(HPos::Right, VPos::Center));
    let named = plot.x.ticks.iter().filter(|_| names);
    named.into_iter().try_for_each(|(at, text)| {
        let (x, y) = place(*at);
        canvas::write(body, &shortened(text), (x, y + 8), &hung)
    })
}

/// Shortens a name below the axis.
fn shortened(text: &str) -> String {
    match text.chars().count() > MAX_NAME {
        true => text.chars().take(MAX_NAME - 1).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

/// Draws a layer of a plot; `bars` is the number of layers with bars.
fn draw(chart: &mut Chart<'_, '_>, layer: &Layer, bars: usize) -> DrawResult {
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
        Mark::Bars => {
            let half = bar_width(bars) / 2.0 * 0.94;
            let bar = |it: &PlotPoint| {
                let ends = [(it.x - half, 0.0), (it.x + half, it.y)];
                Rectangle::new(ends, pen)
            };
            done(chart.draw_series(layer.points.iter().map(bar)))?;
            let (ink, end) = (stroke(INK, 13), half / 4.0);
            let span = |(x, _, (low, high)): (f64, f64, (f64, f64))| {
                let line = [(x, low), (x, high)];
                let ends = [low, high].map(|y| [(x - end, y), (x + end, y)]);
                [line, ends[0], ends[1]].map(|part| PathElement::new(part, ink))
            };
            done(chart.draw_series(spans().flat_map(span)))
        }
        Mark::Dots | Mark::Crosses | Mark::Discs | Mark::Runs | Mark::Printed => {
            markers(chart, layer)
        }
    }
}

fn line(chart: &mut Chart<'_, '_>, layer: &Layer, pen: ShapeStyle) -> DrawResult {
    let corners = layer.corners();
    match DASHES[layer.dash % DASHES.len()] {
        None => done(chart.draw_series(LineSeries::new(corners, pen))),
        Some((size, gap)) => {
            done(chart.draw_series(DashedLineSeries::new(corners, size, gap, pen)))
        }
    }
}

fn markers(chart: &mut Chart<'_, '_>, layer: &Layer) -> DrawResult {
    let (mark, curve) = (layer.mark, layer.curve);
    let marker = |it: &PlotPoint| Sign {
        at: (it.x, it.y),
        mark,
        curve,
        line: None,
    };
    done(chart.draw_series(layer.points.iter().map(marker)))
}

fn done<T, E: std::fmt::Display>(drawn: Result<T, E>) -> DrawResult {
    drawn.map(drop).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Maximum width of a picture on a page of 400 pixels, after the margins of the page and the
    /// border of the figure.
    const NARROW: f64 = 366.0;

    /// A plot with texts that are likely to collide: long names, many runs, an axis of names, a cut
    /// axis.
    fn crowded(names: &[&str]) -> String {
        let points = || (0..names.len()).map(|x| PlotPoint::new(x as f64, 90.0 + x as f64));
        let layer = |label: &str, curve, mark| Layer {
            label: label.to_owned(),
            curve,
            dash: curve,
            mark,
            points: points().collect(),
        };
        let ticks = names.iter().enumerate();
        let x = Axis {
            ticks: ticks
                .map(|(at, name)| (at as f64, (*name).to_owned()))
                .collect(),
            ..Axis::between(
                "what the paper leaves open".to_owned(),
                -1.0,
                names.len() as f64,
                5,
            )
        };
        let plot = Plot {
            x,
            y: Axis::around(
                "share of packets (%)".to_owned(),
                points().map(|it| it.y),
                7,
            ),
            layers: vec![
                layer("SCTP, ten streams", 0, Mark::Means),
                layer(
                    "SCTP, ten streams, printed (rank 10, 11, 12, 13.5, 14, 20, 21 of 21)",
                    0,
                    Mark::Printed,
                ),
            ],
        };
        let title =
            "Fig. 5.2: How far a result depends on what the paper leaves open, in every reading";
        svg(&plot, title).expect("it can be drawn")
    }

    /// Texts of a drawing with their attributes.
    fn texts(svg: &str) -> Vec<(&str, &str)> {
        let parts = svg.split("<text ").skip(1);
        parts
            .filter_map(|part| {
                let (attributes, rest) = part.split_once('>')?;
                Some((attributes, rest.split_once("</text>")?.0.trim()))
            })
            .collect()
    }

    fn number(attributes: &str, name: &str) -> f64 {
        let (_, rest) = attributes.split_once(&format!("{name}=\"")).expect(name);
        let value = rest.split('"').next().and_then(|text| text.parse().ok());
        value.expect("a number")
    }

    #[test]
    fn every_text_stays_on_the_sheet_and_can_be_read_on_a_narrow_page() {
        for names in [
            &["0", "1", "2", "5", "60"] as &[&str],
            &["1 stream", "4 streams", "Westwood+ as published"],
        ] {
            let svg = crowded(names);
            let (width, height) = (f64::from(WIDTH), number(&svg, "height"));
            let texts = texts(&svg);
            assert!(texts.len() > 8);
            for (attributes, text) in texts {
                let at = |name| number(attributes, name) / f64::from(SCALE);
                let size = at("font-size");
                assert!(size * NARROW / width >= 11.0, "{text}: {size}");
                let length = text.chars().count() as f64 * size * 0.55;
                let turned = attributes.contains("rotate");
                let (along, room) = if turned {
                    (at("y"), height)
                } else {
                    (at("x"), width)
                };
                let before = match attributes {
                    it if it.contains("\"middle\"") => length / 2.0,
                    // After a rotation by 270 degrees, a text that ends at a point extends below
                    // that point.
                    it if it.contains("\"end\"") == turned => 0.0,
                    _ => length,
                };
                if turned {
                    // The text is aligned at its upper edge, or at its middle.
                    let above = match attributes {
                        it if it.contains("dy=\"0.76em\"") => 0.0,
                        _ => size / 2.0,
                    };
                    let edge = at("x") - above;
                    let room = edge.min(width - edge - size);
                    assert!(room >= 5.0, "{text} is {room} from the edge");
                }
                let ends = [along - before, along - before + length];
                assert!(
                    ends[0] >= -1.0 && ends[1] <= room + 1.0,
                    "{text}: {ends:?} of {room}"
                );
            }
        }
    }

    #[test]
    fn an_axis_that_is_cut_says_so_and_printed_values_say_whose_they_are() {
        let svg = crowded(&["0", "1", "2"]);
        let words: Vec<&str> = texts(&svg).into_iter().map(|(_, text)| text).collect();
        assert!(
            words.contains(&"the vertical axis does not begin at 0"),
            "{words:?}"
        );
        let printed = words.iter().find(|text| text.contains("printed"));
        assert!(
            printed.is_some_and(|text| text.starts_with("SCTP, ten streams, printed")),
            "{words:?}"
        );
    }

    #[test]
    fn a_long_headline_goes_over_several_lines() {
        assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
        assert_eq!(wrapped("unbreakable", 4), ["unbreakable"]);
        assert!(wrapped("", 4).is_empty());
    }
}
