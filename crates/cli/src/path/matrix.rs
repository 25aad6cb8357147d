//! `anabranch satellite-path --places`: the paths between all pairs of many places.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use anabranch_lab::parquet_table::{ColumnValues, write_parquet};
use anabranch_orbit::{Constellation, Place, Shells, Snapshot, great_circle, places};

use super::{draw, start_seconds};
use crate::arguments::SatellitePath;
use crate::failure::{Failure, unread};

/// Maximum number of pairs.
const MAX_PAIRS: usize = 1_000_000;

/// Column titles of the table.
const TITLES: [&str; 9] = [
    "from",
    "to",
    "great_circle_km",
    "min_rtt_ms",
    "max_rtt_ms",
    "path_changes",
    "min_satellites",
    "max_satellites",
    "steps_without_path",
];

/// Properties of the path between two places, with their range over time.
#[derive(Clone, Debug)]
struct Pair {
    ends: [usize; 2],
    /// Minimum and maximum round-trip time, seconds.
    round_trip: [f64; 2],
    satellites: [usize; 2],
    changes: usize,
    without: usize,
    last: Option<Vec<usize>>,
}

/// Computes all pairs, and prints the results.
pub fn show(
    arguments: &SatellitePath,
    constellation: Constellation,
    file: &std::path::Path,
) -> Result<(), Failure> {
    let told = |what: String| Failure::Usage(format!("--places {}: {what}", file.display()));
    let text = std::fs::read_to_string(file);
    let text = text.map_err(|error| told(format!("cannot read it: {}", unread(&error))))?;
    let rows = places(&text).map_err(told)?;
    let mut names = Vec::new();
    let mut all: Vec<Place> = Vec::new();
    for (number, row) in rows.into_iter().enumerate() {
        let place = row.at.parse();
        all.push(place.map_err(|error| told(format!("row {}: {error}", number + 1)))?);
        names.push(row.name.unwrap_or_else(|| number.to_string()));
    }
    let count = all.len() * all.len().saturating_sub(1) / 2;
    if count == 0 || count > MAX_PAIRS {
        let found = all.len();
        return Err(told(format!("found {found} places; allowed: 2 to 1414")));
    }
    draw(arguments, &constellation, &all)?;
    let pairs = follow(arguments, constellation, &all);
    let steps = (arguments.duration.seconds() / arguments.step.seconds()) as usize + 1;
    if let Some(file) = &arguments.csv {
        let written = std::fs::write(file, csv(&pairs, &names, &all));
        written
            .map_err(|error| Failure::Net(format!("cannot write {}: {error}", file.display())))?;
    }
    if let Some(file) = &arguments.parquet {
        let cannot = |error: &dyn std::fmt::Display| {
            Failure::Net(format!("cannot write {}: {error}", file.display()))
        };
        let out = std::fs::File::create(file).map_err(|error| cannot(&error))?;
        let columns = columns(&pairs, &names, &all);
        write_parquet(out, columns).map_err(|error| cannot(&error))?;
    }
    let mut out = io::stdout().lock();
    out.write_all(words(&pairs, steps).as_bytes())?;
    for file in arguments.csv.iter().chain(&arguments.parquet) {
        writeln!(out, "\n{} pairs: {}", pairs.len(), file.display())?;
    }
    Ok(())
}

fn follow(arguments: &SatellitePath, constellation: Constellation, places: &[Place]) -> Vec<Pair> {
    let mut snapshot = Snapshot::new(Shells::new(vec![constellation]), places.to_vec());
    let ends = (0..places.len()).flat_map(|to| (0..to).map(move |from| [from, to]));
    let pair = |ends| Pair {
        ends,
        round_trip: [f64::INFINITY, 0.0],
        satellites: [usize::MAX, 0],
        changes: 0,
        without: 0,
        last: None,
    };
    let mut pairs: Vec<Pair> = ends.map(pair).collect();
    let (begin, step) = (start_seconds(arguments), arguments.step.seconds());
    let mut number = 0_u64;
    while number as f64 * step <= arguments.duration.seconds() {
        snapshot.move_to(begin + number as f64 * step);
        let mut own = pairs.iter_mut();
        for to in 1..places.len() {
            let from: Vec<usize> = (0..to).collect();
            for (path, pair) in snapshot.paths(&from, to).into_iter().zip(own.by_ref()) {
                let Some(path) = path else {
                    pair.without += 1;
                    continue;
                };
                let [least, most] = &mut pair.round_trip;
                (*least, *most) = (least.min(2.0 * path.delay), most.max(2.0 * path.delay));
                let [fewest, many] = &mut pair.satellites;
                let satellites = path.satellites.len();
                (*fewest, *many) = ((*fewest).min(satellites), (*many).max(satellites));
                let before = pair.last.as_ref();
                pair.changes += usize::from(before.is_some_and(|it| *it != path.satellites));
                pair.last = Some(path.satellites);
            }
        }
        number += 1;
    }
    pairs
}

/// The columns of the table, for a Parquet file.
fn columns(
    pairs: &[Pair],
    names: &[String],
    places: &[Place],
) -> Vec<(&'static str, ColumnValues)> {
    let ends = |end: usize| {
        let all = pairs.iter().map(|pair| names[pair.ends[end]].clone());
        ColumnValues::Text(all.collect())
    };
    let there = |pair: &Pair| pair.last.is_some();
    let numbers = |value: &dyn Fn(&Pair) -> f64| {
        let all = pairs.iter();
        ColumnValues::Numbers(all.map(|it| there(it).then(|| value(it))).collect())
    };
    let counts = |value: &dyn Fn(&Pair) -> usize| {
        let all = pairs.iter();
        ColumnValues::Counts(all.map(|it| there(it).then(|| value(it) as u64)).collect())
    };
    let circle = |pair: &Pair| Some(great_circle(places[pair.ends[0]], places[pair.ends[1]]));
    let without = |pair: &Pair| Some(pair.without as u64);
    let columns = [
        ends(0),
        ends(1),
        ColumnValues::Numbers(pairs.iter().map(circle).collect()),
        numbers(&|pair| pair.round_trip[0] * 1e3),
        numbers(&|pair| pair.round_trip[1] * 1e3),
        counts(&|pair| pair.changes),
        counts(&|pair| pair.satellites[0]),
        counts(&|pair| pair.satellites[1]),
        ColumnValues::Counts(pairs.iter().map(without).collect()),
    ];
    TITLES.into_iter().zip(columns).collect()
}

fn csv(pairs: &[Pair], names: &[String], places: &[Place]) -> String {
    let mut text = TITLES.join(",") + "\n";
    for pair in pairs {
        let [from, to] = pair.ends;
        let name = |end: usize| names[end].replace(['"', ','], " ");
        let circle = great_circle(places[from], places[to]);
        let _ = write!(text, "{},{},{circle:.1},", name(from), name(to));
        let _ = match pair.last {
            Some(_) => write!(
                text,
                "{:.4},{:.4},{},{},{}",
                pair.round_trip[0] * 1e3,
                pair.round_trip[1] * 1e3,
                pair.changes,
                pair.satellites[0],
                pair.satellites[1]
            ),
            None => write!(text, ",,,,"),
        };
        let _ = writeln!(text, ",{}", pair.without);
    }
    text
}

/// The quantile of sorted values: the value below which a fraction `share` of them is.
fn quantile(values: &[f64], share: f64) -> f64 {
    let place = share * values.len().saturating_sub(1) as f64;
    values.get(place.round() as usize).copied().unwrap_or(0.0)
}

fn words(pairs: &[Pair], steps: usize) -> String {
    let there: Vec<&Pair> = pairs.iter().filter(|pair| pair.last.is_some()).collect();
    let mut text = format!("{} pairs, {steps} steps\n", pairs.len());
    if there.is_empty() {
        text.push_str("There is never a path. Try a lower `min_elevation`.\n");
        return text;
    }
    let _ = writeln!(
        text,
        "\n{:<28}{:>9}{:>9}{:>9}{:>9}",
        "of all pairs", "least", "median", "95 %", "most"
    );
    let mut row = |title: &str, digits: usize, value: &dyn Fn(&Pair) -> f64| {
        let mut values: Vec<f64> = there.iter().map(|pair| value(pair)).collect();
        values.sort_unstable_by(f64::total_cmp);
        let [least, median, most_of, most] = [0.0, 0.5, 0.95, 1.0].map(|it| quantile(&values, it));
        let _ = writeln!(
            text,
            "{title:<28}{least:>9.digits$}{median:>9.digits$}{most_of:>9.digits$}{most:>9.digits$}"
        );
    };
    row("least round trip (ms)", 2, &|pair| pair.round_trip[0] * 1e3);
    row("greatest round trip (ms)", 2, &|pair| {
        pair.round_trip[1] * 1e3
    });
    row("greatest / least", 3, &|pair| {
        pair.round_trip[1] / pair.round_trip[0]
    });
    row("changes of the path", 0, &|pair| pair.changes as f64);
    let without = pairs.iter().filter(|pair| pair.without > 0).count();
    let _ = writeln!(text, "{:<28}{without:>9}", "pairs without a path at times");
    text
}
