//! Draws a plot.

use plotters::prelude::*;
use plotters::style::FontStyle;

use super::canvas::{
    self, Drawn, GRID, INK, PAPER, SCALE, Sheet, Side, colour, failed, stroke, style, width_of,
};
use super::plot::{Axis, Layer, Mark, Plot};

const WIDTH: u32 = 960;
const HEIGHT: u32 = 520;
/// The frame, shown pixels: left, top, right, bottom.
const FRAME: [i32; 4] = [80, 84, 936, 456];

/// A pixel of the sheet.
type Pixel = (i32, i32);

/// The plot as an SVG document.
pub fn svg(plot: &Plot, title: &str) -> Result<String, String> {
    canvas::sheet(title, WIDTH, HEIGHT, |sheet| {
        let head = style(16, INK, Side::After);
        let head = TextStyle {
            font: head.font.style(FontStyle::Bold),
            ..head
        };
        canvas::write(sheet, title, (FRAME[0], 28), &head)?;
        legend(sheet, &plot.layers)?;
        axes(sheet, plot)?;
        for layer in &plot.layers {
            let pixels: Vec<Pixel> = layer
                .points
                .iter()
                .map(|point| pixel(plot, point.x, point.y))
                .collect();
            if layer.mark.is_of_means() {
                intervals(sheet, plot, layer)?;
            }
            marks(sheet, layer.mark, colour(layer.colour), &pixels)?;
        }
        Ok(())
    })
}

/// Where a value stands between two pixels.
fn along(axis: &Axis, value: f64, from: i32, to: i32) -> i32 {
    let (from, to) = (f64::from(from * SCALE), f64::from(to * SCALE));
    (from + (value - axis.low) / (axis.high - axis.low) * (to - from)).round() as i32
}

fn pixel(plot: &Plot, x: f64, y: f64) -> Pixel {
    let [left, top, right, bottom] = FRAME;
    (
        along(&plot.x, x, left, right),
        along(&plot.y, y, bottom, top),
    )
}

fn line(sheet: &Sheet<'_>, pixels: Vec<Pixel>, style: ShapeStyle) -> Drawn {
    sheet.draw(&PathElement::new(pixels, style)).map_err(failed)
}

/// Grid, frame, ticks and the texts of the axes.
fn axes(sheet: &Sheet<'_>, plot: &Plot) -> Drawn {
    let [left, top, right, bottom] = FRAME.map(|edge| edge * SCALE);
    let (grid, ink) = (stroke(GRID, 10), stroke(INK, 10));
    for (at, text) in &plot.x.ticks {
        let x = along(&plot.x, *at, FRAME[0], FRAME[2]);
        line(sheet, vec![(x, top), (x, bottom)], grid)?;
        line(sheet, vec![(x, bottom), (x, bottom + 4 * SCALE)], ink)?;
        canvas::write(
            sheet,
            text,
            (x / SCALE, FRAME[3] + 16),
            &style(12, INK, Side::Over),
        )?;
    }
    for (at, text) in &plot.y.ticks {
        let y = along(&plot.y, *at, FRAME[3], FRAME[1]);
        line(sheet, vec![(left, y), (right, y)], grid)?;
        line(sheet, vec![(left - 4 * SCALE, y), (left, y)], ink)?;
        canvas::write(
            sheet,
            text,
            (FRAME[0] - 9, y / SCALE),
            &style(12, INK, Side::Before),
        )?;
    }
    line(
        sheet,
        vec![(left, top), (left, bottom), (right, bottom)],
        ink,
    )?;
    let (middle, centre) = ((FRAME[0] + FRAME[2]) / 2, (FRAME[1] + FRAME[3]) / 2);
    canvas::write(
        sheet,
        &plot.x.label,
        (middle, FRAME[3] + 42),
        &style(13, INK, Side::Over),
    )?;
    let upright = style(13, INK, Side::Over).transform(FontTransform::Rotate270);
    canvas::write(sheet, &plot.y.label, (22, centre), &upright)
}

/// A row of samples and names above the frame.
fn legend(sheet: &Sheet<'_>, layers: &[Layer]) -> Drawn {
    let (mut left, y) = (FRAME[0], 60);
    for layer in layers.iter().filter(|layer| !layer.label.is_empty()) {
        let joined = matches!(
            layer.mark,
            Mark::Line | Mark::Step | Mark::DashedStep | Mark::Means
        );
        let (from, to) = (left * SCALE, (left + if joined { 28 } else { 10 }) * SCALE);
        let at = y * SCALE;
        match layer.mark {
            Mark::Means => {
                marks(
                    sheet,
                    Mark::Line,
                    colour(layer.colour),
                    &[(from, at), (to, at)],
                )?;
                marks(
                    sheet,
                    Mark::Discs,
                    colour(layer.colour),
                    &[((from + to) / 2, at)],
                )?;
            }
            mark if joined => marks(sheet, mark, colour(layer.colour), &[(from, at), (to, at)])?,
            mark => marks(sheet, mark, colour(layer.colour), &[((from + to) / 2, at)])?,
        }
        canvas::write(
            sheet,
            &layer.label,
            (to / SCALE + 7, y),
            &style(13, INK, Side::After),
        )?;
        left = to / SCALE + 7 + width_of(&layer.label, 13) + 24;
    }
    Ok(())
}

/// The intervals of a layer, as bars with ends.
fn intervals(sheet: &Sheet<'_>, plot: &Plot, layer: &Layer) -> Drawn {
    let bar = stroke(colour(layer.colour), 14);
    for point in &layer.points {
        let Some(half) = point.half else { continue };
        let (x, low) = pixel(plot, point.x, point.y - half);
        let (_, high) = pixel(plot, point.x, point.y + half);
        let end = 5 * SCALE;
        line(sheet, vec![(x, low), (x, high)], bar)?;
        line(sheet, vec![(x - end, low), (x + end, low)], bar)?;
        line(sheet, vec![(x - end, high), (x + end, high)], bar)?;
    }
    Ok(())
}

/// The corners of a staircase through the points: each value stands until the next.
fn stairs(pixels: &[Pixel]) -> Vec<Pixel> {
    let mut corners: Vec<Pixel> = Vec::with_capacity(2 * pixels.len());
    for &(x, y) in pixels {
        if let Some(&(_, before)) = corners.last() {
            corners.push((x, before));
        }
        corners.push((x, y));
    }
    corners.dedup();
    corners
}

/// Draws marks at pixels.
fn marks(sheet: &Sheet<'_>, mark: Mark, colour: RGBColor, pixels: &[Pixel]) -> Drawn {
    match mark {
        Mark::Line => line(sheet, pixels.to_vec(), stroke(colour, 16)),
        Mark::Step => line(sheet, stairs(pixels), stroke(colour, 14)),
        Mark::DashedStep => dashes(sheet, &stairs(pixels), stroke(colour, 14)),
        Mark::Means => {
            line(sheet, pixels.to_vec(), stroke(colour, 16))?;
            marks(sheet, Mark::Discs, colour, pixels)
        }
        Mark::Dots => discs(sheet, pixels, 14 * SCALE / 10, colour.filled()),
        Mark::SmallDiscs => discs(sheet, pixels, 5 * SCALE / 2, colour.filled()),
        Mark::Discs | Mark::SeparateMeans => discs(sheet, pixels, 4 * SCALE, colour.filled()),
        Mark::Crosses => {
            let (arm, style) = (2 * SCALE, stroke(colour, 9));
            for &(x, y) in pixels {
                line(sheet, vec![(x - arm, y - arm), (x + arm, y + arm)], style)?;
                line(sheet, vec![(x - arm, y + arm), (x + arm, y - arm)], style)?;
            }
            Ok(())
        }
        Mark::Printed => {
            let arm = 5 * SCALE;
            for &(x, y) in pixels {
                let corners = vec![(x, y - arm), (x + arm, y), (x, y + arm), (x - arm, y)];
                sheet
                    .draw(&Polygon::new(corners.clone(), PAPER.filled()))
                    .map_err(failed)?;
                let outline = corners.iter().copied().chain([corners[0]]).collect();
                line(sheet, outline, stroke(INK, 16))?;
            }
            Ok(())
        }
    }
}

fn discs(sheet: &Sheet<'_>, pixels: &[Pixel], radius: i32, style: ShapeStyle) -> Drawn {
    pixels
        .iter()
        .try_for_each(|&at| sheet.draw(&Circle::new(at, radius, style)).map_err(failed))
}

/// A dashed line through level and upright pieces; the pattern runs on through the corners.
fn dashes(sheet: &Sheet<'_>, corners: &[Pixel], style: ShapeStyle) -> Drawn {
    let (dash, period) = (6 * SCALE, 10 * SCALE);
    let mut walked = 0;
    for pair in corners.windows(2) {
        let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
        let length = (x1 - x0).abs() + (y1 - y0).abs();
        let at = |s: i32| (x0 + (x1 - x0).signum() * s, y0 + (y1 - y0).signum() * s);
        let mut s = 0;
        while s < length {
            let phase = (walked + s) % period;
            let end = (s + if phase < dash {
                dash - phase
            } else {
                period - phase
            })
            .min(length);
            if phase < dash {
                line(sheet, vec![at(s), at(end)], style)?;
            }
            s = end;
        }
        walked = (walked + length) % period;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stairs_hold_each_value_until_the_next() {
        assert_eq!(
            stairs(&[(0, 5), (4, 9), (7, 9)]),
            [(0, 5), (4, 5), (4, 9), (7, 9)]
        );
        assert_eq!(stairs(&[]), []);
    }
}
