//! Downsampling of curves with more points than are visible. Needed because one second on real
//! sockets gives hundreds of thousands of points, which no browser can display.

use std::collections::BTreeSet;

use super::plot::{Mark, PlotPoint};

/// Maximum number of points of a curve that is drawn unchanged. Longer curves are downsampled,
/// without visible difference.
const MAX_POINTS: usize = 50_000;
/// Resolution: number of columns for lines, and of columns and rows for dots. This is several
/// columns per screen pixel, and about one cell per radius of a dot.
const COLUMNS: usize = 2_000;
const CELLS: (usize, usize) = (600, 400);

/// The visible points. For a line: the first, smallest, largest and last point in each column; for
/// dots: one point per cell.
pub(super) fn downsample(mark: Mark, points: Vec<PlotPoint>) -> Vec<PlotPoint> {
    if points.len() <= MAX_POINTS {
        return points;
    }
    match mark {
        Mark::Line | Mark::Step => of_line(&points),
        Mark::Dots => of_dots(&points),
        _ => points,
    }
}

fn of_line(points: &[PlotPoint]) -> Vec<PlotPoint> {
    let column = places(points.iter().map(|it| it.x), COLUMNS);
    let mut kept = Vec::with_capacity(4 * COLUMNS);
    let mut from = 0;
    for group in points.chunk_by(|one, other| column(one.x) == column(other.x)) {
        let by_y = |one: &usize, other: &usize| group[*one].y.total_cmp(&group[*other].y);
        let all = 0..group.len();
        let ends = [all.clone().min_by(by_y), all.max_by(by_y)];
        let mut here: Vec<usize> = ends.into_iter().flatten().collect();
        here.extend([0, group.len() - 1]);
        here.sort_unstable();
        here.dedup();
        kept.extend(here.into_iter().map(|at| points[from + at]));
        from += group.len();
    }
    kept
}

fn of_dots(points: &[PlotPoint]) -> Vec<PlotPoint> {
    let column = places(points.iter().map(|it| it.x), CELLS.0);
    let row = places(points.iter().map(|it| it.y), CELLS.1);
    let mut taken = BTreeSet::new();
    let is_new = |it: &&PlotPoint| taken.insert((column(it.x), row(it.y)));
    points.iter().filter(is_new).copied().collect()
}

/// Returns a function that maps a value to the index of its part, if the range of `values` is
/// divided into `parts` equal parts.
fn places(values: impl Iterator<Item = f64>, parts: usize) -> impl Fn(f64) -> usize {
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    let scale = if high > low {
        parts as f64 / (high - low)
    } else {
        0.0
    };
    move |value| ((value - low) * scale) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saw(count: usize) -> Vec<PlotPoint> {
        let at = |i: usize| PlotPoint::new(i as f64, (i % 1_000) as f64);
        (0..count).map(at).collect()
    }

    #[test]
    fn few_points_stay_as_they_are() {
        for mark in [Mark::Line, Mark::Step, Mark::Dots] {
            assert_eq!(downsample(mark, saw(MAX_POINTS)).len(), MAX_POINTS);
        }
        assert_eq!(
            downsample(Mark::Crosses, saw(MAX_POINTS + 1)).len(),
            MAX_POINTS + 1
        );
    }

    #[test]
    fn a_line_keeps_its_ends_and_each_peak() {
        let mut points = saw(300_000);
        points[123_456].y = 5_000.0;
        points[200_001].y = -5_000.0;
        let kept = downsample(Mark::Step, points.clone());
        assert!(kept.len() <= 4 * (COLUMNS + 1), "{}", kept.len());
        assert!(kept.windows(2).all(|pair| pair[0].x < pair[1].x));
        let has = |at: usize| {
            kept.iter()
                .any(|it| (it.x, it.y) == (points[at].x, points[at].y))
        };
        assert!([0, 123_456, 200_001, 299_999].into_iter().all(has));
    }

    #[test]
    fn a_dot_stays_in_each_cell() {
        let points = saw(300_000);
        let kept = downsample(Mark::Dots, points.clone());
        assert!(kept.len() <= (CELLS.0 + 1) * (CELLS.1 + 1));
        let near = |of: &PlotPoint| {
            kept.iter().any(|it| {
                (it.x - of.x).abs() <= 300_000.0 / CELLS.0 as f64
                    && (it.y - of.y).abs() <= 1_000.0 / CELLS.1 as f64
            })
        };
        assert!(points.iter().step_by(997).all(near));
    }

    #[test]
    fn points_at_one_place_are_one_dot() {
        let points = vec![PlotPoint::new(1.0, 2.0); MAX_POINTS + 1];
        assert_eq!(downsample(Mark::Dots, points).len(), 1);
    }
}
