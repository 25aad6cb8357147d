//! Draws maps: equirectangular, north is up, and 0 degrees east is in the middle.

mod frames;

use plotters::prelude::*;
use plotters::style::FontStyle;

use super::canvas::{
    self, DrawResult, FAINT, GRID, INK, SCALE, Sheet, TextAlignment, colour, failed, stroke, style,
};
use super::draw::{HEADLINE, wrapped};
use super::map::{Map, MapPlace};

/// All figures have this width, so that their letters have the same size on a narrow page.
const WIDTH: i32 = 440;
const LINE: i32 = 22;
const TEXT: i32 = 17;
/// Position and width of the map in displayed pixels; its height is half of its width.
const LEFT: i32 = 8;
const WIDE: i32 = 424;
/// Classes of load: upper limit in percent, name, and index of the colour in the palette.
const LOADS: [(f64, &str, usize); 4] = [
    (25.0, "below 25 %", 0),
    (50.0, "25 to 50 %", 2),
    (75.0, "50 to 75 %", 4),
    (f64::INFINITY, "above 75 %", 1),
];
/// Indices of the colours of paths in the palette.
const PATHS: [usize; 3] = [3, 5, 4];

/// Maps as an SVG document. Several maps are shown one after the other, each for one second,
/// without a script. If the reader prefers no motion, only the first map is shown.
///
/// # Errors
/// There is no map, or the drawing library failed.
pub fn svg(maps: &[Map], title: &str) -> Result<String, String> {
    match maps {
        [] => Err("there is no map to draw".to_owned()),
        [map] => still(map, title),
        _ => frames::svg(maps, title),
    }
}

/// A single map as an SVG document.
fn still(map: &Map, title: &str) -> Result<String, String> {
    page(title, map.paths.len(), |page| {
        let (sheet, top) = (page.sheet, page.top);
        for (index, (_, path)) in (0..).zip(&map.paths) {
            let halo = colour(PATHS[index % PATHS.len()]).mix(0.45);
            for pair in path.windows(2) {
                page.line([pair[0], pair[1]], halo.stroke_width(7 * SCALE as u32))?;
            }
        }
        for (ends, load) in &map.links {
            page.line(*ends, stroke(colour(LOADS[class(*load)].2), 16))?;
        }
        for place in &map.satellites {
            page.dot(*place, 1, FAINT)?;
        }
        for place in &map.stations {
            page.dot(*place, 3, INK)?;
        }
        let text = style(TEXT, INK, TextAlignment::After);
        let (from, until) = map.window;
        let words = format!("positions at {} s; load from {from} to {until} s", map.time);
        canvas::write(sheet, &words, (12, line(top, 0)), &text)?;
        for (index, (label, path)) in (0..).zip(&map.paths) {
            let label = match path.is_empty() {
                true => format!("{label} (no path)"),
                false => label.clone(),
            };
            page.path_sign(index, &label)?;
        }
        Ok(())
    })
}

/// The class of a load in percent.
fn class(load: f64) -> usize {
    let found = LOADS.iter().position(|(limit, ..)| load < *limit);
    found.unwrap_or(LOADS.len() - 1)
}

/// Vertical middle of a row of text below the map.
fn line(top: i32, row: i32) -> i32 {
    top + WIDE / 2 + LINE / 2 + 6 + LINE * row
}

/// Draws a document with title, legend and grid, and space for the labels of `paths`.
fn page(
    title: &str,
    paths: usize,
    draw: impl FnOnce(&Page<'_, '_>) -> DrawResult,
) -> Result<String, String> {
    let headline = wrapped(title, HEADLINE);
    let rows = headline.len() as i32 + 2;
    let top = 14 + LINE * rows;
    let below = LINE * (1 + paths as i32) + 12;
    let height = top + WIDE / 2 + below;
    canvas::sheet(title, WIDTH as u32, height as u32, |sheet| {
        let head = style(TEXT + 1, INK, TextAlignment::After);
        let head = TextStyle {
            font: head.font.style(FontStyle::Bold),
            ..head
        };
        for (line, text) in (0..).zip(&headline) {
            canvas::write(sheet, text, (12, 16 + LINE * line), &head)?;
        }
        legend(sheet, 16 + LINE * headline.len() as i32)?;
        let page = Page { sheet, top };
        page.grid()?;
        draw(&page)
    })
}

/// Draws the legend of the classes of load, in two rows.
fn legend(sheet: &Sheet<'_>, top: i32) -> DrawResult {
    let text = style(TEXT, INK, TextAlignment::After);
    for (index, (_, name, shown)) in (0..).zip(LOADS) {
        let (x, y) = (12 + 212 * (index % 2), top + LINE * (index / 2));
        let sign = [x, x + 32].map(|x| (x * SCALE, y * SCALE));
        let sign = PathElement::new(sign.to_vec(), stroke(colour(shown), 16));
        sheet.draw(&sign).map_err(failed)?;
        canvas::write(sheet, &format!("load {name}"), (x + 42, y), &text)?;
    }
    Ok(())
}

/// The drawing area of the map.
struct Page<'a, 's> {
    sheet: &'a Sheet<'s>,
    top: i32,
}

/// Position of a place in drawn pixels.
fn at(top: i32, [north, east]: MapPlace) -> [f64; 2] {
    let scale = f64::from(WIDE * SCALE) / 360.0;
    [
        f64::from(LEFT * SCALE) + (east + 180.0) * scale,
        f64::from(top * SCALE) + (90.0 - north) * scale,
    ]
}

/// The shorter line between two places in drawn pixels, split in two if it crosses the edge of the
/// map.
fn pieces(top: i32, ends: [MapPlace; 2]) -> Vec<[[f64; 2]; 2]> {
    let [from, to] = ends.map(|it| at(top, it));
    let [left, right] = [LEFT, LEFT + WIDE].map(|x| f64::from(x * SCALE));
    let width = right - left;
    let over = to[0] - from[0];
    if over.abs() <= width / 2.0 {
        return vec![[from, to]];
    }
    let (edge, other, shift) = match over > 0.0 {
        true => (left, right, -width),
        false => (right, left, width),
    };
    let share = (edge - from[0]) / (over + shift);
    let y = from[1] + (to[1] - from[1]) * share;
    vec![[from, [edge, y]], [[other, y], to]]
}

impl Page<'_, '_> {
    fn at(&self, place: MapPlace) -> [f64; 2] {
        at(self.top, place)
    }

    /// Draws a sample line and label of a path below the map.
    fn path_sign(&self, index: usize, label: &str) -> DrawResult {
        let y = line(self.top, index as i32 + 1);
        let halo = colour(PATHS[index % PATHS.len()]).mix(0.45);
        let sign = [12, 44].map(|x| (x * SCALE, y * SCALE));
        let sign = PathElement::new(sign.to_vec(), halo.stroke_width(7 * SCALE as u32));
        self.sheet.draw(&sign).map_err(failed)?;
        canvas::write(
            self.sheet,
            label,
            (54, y),
            &style(TEXT, INK, TextAlignment::After),
        )
    }

    fn stretch(&self, from: [f64; 2], to: [f64; 2], style: ShapeStyle) -> DrawResult {
        let corners = [from, to].map(|[x, y]| (x.round() as i32, y.round() as i32));
        let line = PathElement::new(corners.to_vec(), style);
        self.sheet.draw(&line).map_err(failed)
    }

    fn line(&self, ends: [MapPlace; 2], style: ShapeStyle) -> DrawResult {
        let mut pieces = pieces(self.top, ends).into_iter();
        pieces.try_for_each(|[from, to]| self.stretch(from, to, style))
    }

    fn dot(&self, place: MapPlace, radius: i32, colour: RGBColor) -> DrawResult {
        let [x, y] = self.at(place).map(|it| it.round() as i32);
        let dot = Circle::new((x, y), radius * SCALE, colour.filled());
        self.sheet.draw(&dot).map_err(failed)
    }

    fn grid(&self) -> DrawResult {
        for east in (-180..=180).step_by(60) {
            let east = f64::from(east);
            let ends = [[90.0, east], [-90.0, east]].map(|it| self.at(it));
            self.stretch(ends[0], ends[1], stroke(GRID, 10))?;
        }
        for north in (-90..=90).step_by(30) {
            let north = f64::from(north);
            let ends = [[north, -180.0], [north, 180.0]].map(|it| self.at(it));
            self.stretch(ends[0], ends[1], stroke(GRID, 10))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line from 170° E to 170° W spans 20°, and not 340°: it is drawn as two lines, which end at
    /// the edges of the map. The centre of the map is at 220 pixels, at the height of the equator.
    #[test]
    fn lines_and_dots_are_where_they_belong() {
        let map = Map {
            window: (0.0, 10.0),
            satellites: vec![[0.0, 0.0]],
            stations: vec![[90.0, -180.0]],
            links: vec![([[0.0, 170.0], [0.0, -170.0]], 80.0)],
            ..Map::default()
        };
        let text = svg(&[map], "Title").expect("a drawing");
        let top = 14 + LINE * 3;
        let equator = (top + WIDE / 4) * SCALE;
        assert!(
            text.contains(&format!("cx=\"440\" cy=\"{equator}\" r=\"2\"")),
            "{text}"
        );
        assert!(text.contains(&format!("cx=\"16\" cy=\"{}\" r=\"6\"", top * SCALE)));
        assert!(
            text.contains(&format!("points=\"840,{equator} 864,{equator} \"")),
            "{text}"
        );
        assert!(
            text.contains(&format!("points=\"16,{equator} 40,{equator} \"")),
            "{text}"
        );
    }
}
