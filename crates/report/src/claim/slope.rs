//! Slopes of measures over the values of a sweep.

use anabranch_scenario::value::Point;

use super::{Runs, same_point};

/// Groups points into series along a sweep, in ascending order of x. Values that are not numbers
/// keep their order of appearance.
pub(super) fn lines(points: Vec<(Point, Runs)>, along: &str) -> Vec<(Point, Vec<(f64, Runs)>)> {
    let mut all: Vec<(Point, Vec<(f64, Runs)>)> = Vec::new();
    for (mut point, runs) in points {
        let Some(place) = point.iter().position(|(name, _)| name == along) else {
            continue;
        };
        let (_, x) = point.remove(place);
        let row = match all.iter().position(|(other, _)| same_point(other, &point)) {
            Some(row) => row,
            None => {
                all.push((point, Vec::new()));
                all.len() - 1
            }
        };
        let row = &mut all[row].1;
        let x = x.as_f64().unwrap_or(row.len() as f64);
        row.push((x, runs));
    }
    all.iter_mut()
        .for_each(|(_, row)| row.sort_by(|a, b| a.0.total_cmp(&b.0)));
    all
}

/// Least-squares slope for each replication that has a value at every x, multiplied by `sign`.
pub(super) fn slopes(row: &[(f64, Runs)], sign: f64) -> Vec<f64> {
    if row.len() < 2 {
        return Vec::new();
    }
    let mean = row.iter().map(|(x, _)| x).sum::<f64>() / row.len() as f64;
    let squares: f64 = row.iter().map(|(x, _)| (x - mean) * (x - mean)).sum();
    let slope = |(replication, _): &(u32, f64)| {
        let product = |(x, runs): &(f64, Runs)| {
            let (_, y) = runs.iter().find(|(other, _)| other == replication)?;
            Some((x - mean) * y)
        };
        let products: Option<Vec<f64>> = row.iter().map(product).collect();
        Some(sign * products?.iter().sum::<f64>() / squares)
    };
    let first = row.iter().take(1).flat_map(|(_, runs)| runs);
    first.filter_map(slope).collect()
}
