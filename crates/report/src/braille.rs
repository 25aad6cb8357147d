//! Plots as text: each character shows two by four dots (Braille patterns).

use crate::figure::plot::{Mark, Plot};

/// A grid of characters. Each character stores the last layer that was drawn into it.
pub struct Dots {
    columns: usize,
    rows: usize,
    cells: Vec<Cell>,
}

#[derive(Clone, Copy, Default)]
struct Cell {
    dots: u8,
    layer: usize,
    sign: Option<char>,
}

/// Bits of the dots of a character, by row and column (Unicode 10.0, §21.1).
const BITS: [[u8; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];

impl Dots {
    /// Draws a plot into a grid of `columns` by `rows` characters.
    pub fn of(plot: &Plot, columns: usize, rows: usize) -> Dots {
        let mut dots = Dots {
            columns,
            rows,
            cells: vec![Cell::default(); columns * rows],
        };
        for (index, layer) in plot.layers.iter().enumerate() {
            // Background layers are not drawn, because characters are too coarse for them.
            if layer.mark.is_spread() {
                continue;
            }
            let mut before: Option<(i64, i64)> = None;
            for point in &layer.points {
                let at = dots.place(plot, point.x, point.y);
                match (layer.mark, before) {
                    (Mark::Printed, _) => dots.sign(at, '◇', index),
                    (Mark::Bars, _) => dots.line(dots.place(plot, point.x, 0.0), at, index),
                    (Mark::Step, Some(from)) => {
                        dots.line(from, (at.0, from.1), index);
                        dots.line((at.0, from.1), at, index);
                    }
                    (Mark::Line | Mark::Means, Some(from)) => dots.line(from, at, index),
                    _ => dots.dot(at, index),
                }
                if let Some((low, high)) = point.span {
                    let (low, high) = (
                        dots.place(plot, point.x, low),
                        dots.place(plot, point.x, high),
                    );
                    dots.line(low, high, index);
                }
                before = Some(at);
            }
        }
        dots
    }

    fn place(&self, plot: &Plot, x: f64, y: f64) -> (i64, i64) {
        let step = |part: f64, steps: usize| (part * (steps - 1) as f64).round() as i64;
        let down = 4 * self.rows;
        let right = step(plot.x.part(x), 2 * self.columns);
        (right, down as i64 - 1 - step(plot.y.part(y), down))
    }

    fn cell(&mut self, x: i64, y: i64) -> Option<&mut Cell> {
        let (column, row) = (usize::try_from(x).ok()? / 2, usize::try_from(y).ok()? / 4);
        (column < self.columns && row < self.rows)
            .then(|| &mut self.cells[row * self.columns + column])
    }

    fn dot(&mut self, (x, y): (i64, i64), layer: usize) {
        let bit = BITS[y.rem_euclid(4) as usize][x.rem_euclid(2) as usize];
        if let Some(cell) = self.cell(x, y) {
            cell.dots |= bit;
            cell.layer = layer;
        }
    }

    fn sign(&mut self, (x, y): (i64, i64), sign: char, layer: usize) {
        if let Some(cell) = self.cell(x, y) {
            cell.sign = Some(sign);
            cell.layer = layer;
        }
    }

    /// Draws a line of dots between two positions, one dot per step along the longer side.
    fn line(&mut self, from: (i64, i64), to: (i64, i64), layer: usize) {
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let steps = dx.abs().max(dy.abs()).clamp(1, 1 << 16);
        for step in 0..=steps {
            let along = |start: i64, length: i64| {
                start + (2 * length * step + length.signum() * steps) / (2 * steps)
            };
            self.dot((along(from.0, dx), along(from.1, dy)), layer);
        }
    }

    /// The rows from top to bottom, as characters with their layers.
    pub fn rows(&self) -> impl Iterator<Item = Vec<(char, usize)>> + '_ {
        self.cells.chunks(self.columns).map(|row| {
            let character = |cell: &Cell| {
                let braille = char::from_u32(0x2800 + u32::from(cell.dots)).unwrap_or(' ');
                let plain = if cell.dots == 0 { ' ' } else { braille };
                (cell.sign.unwrap_or(plain), cell.layer)
            };
            row.iter().map(character).collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::plot::{Axis, Layer, PlotPoint};

    fn drawn(mark: Mark, points: &[(f64, f64)]) -> Vec<String> {
        let points = points.iter().map(|&(x, y)| PlotPoint::new(x, y)).collect();
        let layer = Layer {
            label: String::new(),
            curve: 0,
            dash: 0,
            mark,
            points,
        };
        let axis = || Axis::between(String::new(), 0.0, 7.0, 2);
        let plot = Plot {
            x: axis(),
            y: axis(),
            layers: vec![layer],
        };
        Dots::of(&plot, 4, 2)
            .rows()
            .map(|row| row.into_iter().map(|(c, _)| c).collect())
            .collect()
    }

    #[test]
    fn a_diagonal_runs_from_corner_to_corner() {
        assert_eq!(
            drawn(Mark::Line, &[(0.0, 0.0), (7.0, 7.0)]),
            ["  ⡠⠊", "⡠⠊  "]
        );
    }

    #[test]
    fn a_step_stands_until_the_next() {
        assert_eq!(
            drawn(Mark::Step, &[(0.0, 0.0), (4.0, 7.0), (7.0, 7.0)]),
            ["  ⡏⠉", "⣀⣀⡇ "]
        );
    }

    #[test]
    fn points_outside_are_left_out_and_printed_ones_are_diamonds() {
        assert_eq!(
            drawn(Mark::Printed, &[(0.0, 7.0), (99.0, 3.0), (-5.0, -5.0)]),
            ["◇   ", "    "]
        );
    }
}
