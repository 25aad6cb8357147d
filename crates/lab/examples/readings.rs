//! Runs a paper with every combination ("reading") of interpretations of details that it leaves
//! open, and counts which printed values each reading reproduces.
//!
//! ```sh
//! cargo run --release -p anabranch-lab --example readings -- \
//!     ho2008 [--jobs 2] [--out readings.csv]
//! ```
//!
//! `papers/<name>/readings.toml` defines the search: `axes` of parameters with their values, of
//! which every combination is a reading; the `tables` whose printed values count; `replications`;
//! and settings that are `set` in all readings. A run that two readings have in common is executed
//! once.
//!
//! With many readings, the best one matches some values by chance. A permutation test estimates how
//! many: for each value separately, it shuffles which readings match the value, without a change of
//! their number. The best reading then shows how many matches the search would find if the matches
//! of different values were independent.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::io::Write;

use anabranch_engine::plan::{Plan, PlanRequest, PlannedRun};
use anabranch_lab::papers;
use anabranch_lab::run::{Simulator, in_memory};
use anabranch_report::compare::Verdict;
use anabranch_report::derive;
use anabranch_report::reference::Reference;
use anabranch_report::table::Table;
use anabranch_scenario::records::{Manifest, Results, RunRecord, SeriesRecord};
use anabranch_scenario::tree::SpecNode;
use serde_json::Value;

/// Number of permutations.
const SHUFFLES: usize = 10_000;

/// Definition of the search in its file.
struct Search {
    replications: u32,
    tables: Vec<String>,
    set: Vec<String>,
    axes: Vec<(String, Vec<String>)>,
}

/// A printed value, identified by table, series, x and metric.
type Printed = String;

/// For each printed value that applies to a reading: whether the reading reproduces it.
type Hits = BTreeMap<Printed, bool>;

impl Search {
    fn read(text: &str) -> Result<Self, Box<dyn Error>> {
        let root = SpecNode::parse(text).map_err(|problem| format!("{problem:?}"))?;
        let json = root.to_json();
        let words = |value: &Value| -> Vec<String> {
            let each = value.as_array().into_iter().flatten();
            each.map(|it| it.as_str().map_or_else(|| it.to_string(), str::to_owned))
                .collect()
        };
        // The names come from the parsed TOML, because the JSON map does not preserve their order.
        let axes = root.get("axes").map(SpecNode::entries).unwrap_or_default();
        let axis = |name: &str| (name.to_owned(), words(&json["axes"][name]));
        Ok(Self {
            replications: json["replications"]
                .as_u64()
                .ok_or("`replications` is missing")? as u32,
            tables: words(&json["tables"]),
            set: words(&json["set"]),
            axes: axes.iter().map(|entry| axis(&entry.key)).collect(),
        })
    }

    /// All readings, each as a list of overrides.
    fn readings(&self) -> Vec<Vec<String>> {
        let mut all = vec![Vec::new()];
        for (name, values) in &self.axes {
            let longer = all.iter().flat_map(|reading: &Vec<String>| {
                values.iter().map(move |value| {
                    let one = format!("{name}={value}");
                    reading.iter().cloned().chain([one]).collect()
                })
            });
            all = longer.collect();
        }
        all
    }
}

/// Finished runs, by everything that determines their results.
type Made = BTreeMap<(String, u32), RunRecord>;

/// Executes the missing runs of a plan, and returns all its records.
fn records(plan: &Plan, made: &mut Made, jobs: usize) -> Result<Vec<RunRecord>, Box<dyn Error>> {
    let units = PlannedRun::all(plan);
    let key = |unit: &PlannedRun<'_>| (unit.point.hash(), unit.replication);
    let open: Vec<PlannedRun<'_>> = units
        .iter()
        .filter(|unit| !made.contains_key(&key(unit)))
        .copied()
        .collect();
    let new = in_memory(&open, 1, &Simulator::default(), jobs, &|_| {})?;
    for (unit, record) in open.iter().zip(new) {
        made.insert(key(unit), record);
    }
    // Two points with the same world share a run; the name in each record is that of its point.
    let named = |unit: &PlannedRun<'_>| RunRecord {
        experiment: unit.experiment.id.clone(),
        point: unit.point(),
        ..made[&key(unit)].clone()
    };
    Ok(units.iter().map(named).collect())
}

fn hits(
    plan: &Plan,
    records: Vec<RunRecord>,
    reference: &Reference,
) -> Result<Hits, Box<dyn Error>> {
    let derived = derive::records(&plan.spec, &records);
    let results = Results {
        manifest: Manifest {
            version: String::new(),
            commit: None,
            name: plan.spec.name.clone(),
            spec: String::new(),
            overrides: Vec::new(),
            only: Vec::new(),
            files: BTreeMap::new(),
            spec_hash: plan.hash.clone(),
            seed: 1,
            record_all: false,
            added: Vec::new(),
            live: Vec::new(),
            replications: Vec::new(),
            runs: records.len() as u64,
            packet_hops: 0,
        },
        spec: plan.spec.clone(),
        records: records.into_iter().chain(derived).collect(),
        series: std::sync::Arc::new(Vec::<SeriesRecord>::new()),
    };
    let mut hits = Hits::new();
    for table in &plan.spec.tables {
        for line in Table::make(table, &results, reference)?.lines {
            let Some(judgement) = line.judgement else {
                continue;
            };
            let printed = format!("{} {} {}", table.id, line.metric, line.x);
            hits.insert(
                printed,
                matches!(judgement.verdict, Verdict::Reproduced | Verdict::Compatible),
            );
        }
    }
    Ok(hits)
}

/// The number of values that the best reading matches, for each permutation.
fn by_chance(all: &[Hits], values: &BTreeSet<Printed>) -> Vec<usize> {
    let mut state = 1u64;
    // SplitMix64 with a remainder, whose bias is negligible because there are far fewer than 2^64
    // readings.
    let mut below = |limit: usize| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % limit as u64) as usize
    };
    let mut columns: Vec<Vec<bool>> = values
        .iter()
        .map(|value| {
            all.iter()
                .map(|hits| hits.get(value) == Some(&true))
                .collect()
        })
        .collect();
    let mut best: Vec<usize> = (0..SHUFFLES)
        .map(|_| {
            let mut sums = vec![0; all.len()];
            for column in &mut columns {
                for last in (1..column.len()).rev() {
                    column.swap(last, below(last + 1));
                }
                for (sum, hit) in sums.iter_mut().zip(column.iter()) {
                    *sum += usize::from(*hit);
                }
            }
            sums.into_iter().max().unwrap_or(0)
        })
        .collect();
    best.sort_unstable();
    best
}

fn argument(name: &str) -> Option<String> {
    let mut all = std::env::args().skip_while(|it| it != name);
    all.next()?;
    all.next()
}

fn main() -> Result<(), Box<dyn Error>> {
    let name = std::env::args().nth(1).ok_or("which paper?")?;
    let jobs = argument("--jobs").map_or(Ok(2), |jobs| jobs.parse())?;
    let paper = papers::carried(&name)?;
    let folder = format!("papers/{name}");
    let search = Search::read(&fs::read_to_string(format!("{folder}/readings.toml"))?)?;
    let text = fs::read_to_string(format!("{folder}/paper.toml"))?;
    let mut made = Made::new();
    let mut all: Vec<Hits> = Vec::new();
    let readings = search.readings();
    for (number, reading) in readings.iter().enumerate() {
        let request = PlanRequest::new(format!("{folder}/paper.toml"), text.clone()).with(|it| {
            it.overrides = search.set.iter().chain(reading).cloned().collect();
            it.only = search.tables.clone();
            it.replications = Some(search.replications);
            it.seed = 1;
        });
        let plan = Plan::new(request).map_err(|error| error.to_string())?;
        let reference = paper.reference(&plan.spec)?.reference;
        let records = records(&plan, &mut made, jobs)?;
        let hits = hits(&plan, records, &reference)?;
        if let Some(first) = all.first()
            && !first.keys().eq(hits.keys())
        {
            let reading = reading.join(", ");
            return Err(format!("{reading}: not every printed value is judged").into());
        }
        all.push(hits);
        eprint!("\r{} of {} readings", number + 1, readings.len());
    }
    eprintln!();
    tell(&search, &readings, &all, made.len())
}

fn tell(
    search: &Search,
    readings: &[Vec<String>],
    all: &[Hits],
    runs: usize,
) -> Result<(), Box<dyn Error>> {
    let values: BTreeSet<Printed> = all.iter().flat_map(|hits| hits.keys().cloned()).collect();
    let count = |hits: &Hits| hits.values().filter(|hit| **hit).count();
    if let Some(path) = argument("--out") {
        let mut out = fs::File::create(path)?;
        let axes: Vec<&str> = search.axes.iter().map(|(name, _)| name.as_str()).collect();
        let columns: Vec<&str> = values.iter().map(String::as_str).collect();
        writeln!(out, "{},values,{}", axes.join(","), columns.join(","))?;
        for (reading, hits) in readings.iter().zip(all) {
            let axes: Vec<&str> = reading
                .iter()
                .filter_map(|one| Some(one.split_once('=')?.1))
                .collect();
            let cells: Vec<&str> = values
                .iter()
                .map(|value| {
                    if hits.get(value) == Some(&true) {
                        "1"
                    } else {
                        "0"
                    }
                })
                .collect();
            writeln!(
                out,
                "{},{},{}",
                axes.join(","),
                count(hits),
                cells.join(",")
            )?;
        }
    }
    println!(
        "{} readings, {} printed values, {runs} runs",
        readings.len(),
        values.len()
    );
    println!("each value, and the readings that give it:");
    for value in &values {
        let giving = all
            .iter()
            .filter(|hits| hits.get(value) == Some(&true))
            .count();
        println!("  {value}: {giving}");
    }
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(count(&all[at])));
    println!("the readings that give most:");
    for &at in order.iter().take(12) {
        println!("  {} values: {}", count(&all[at]), readings[at].join(", "));
    }
    println!("the stated one (the first): {}", count(&all[0]));
    let best = count(&all[order[0]]);
    let chance = by_chance(all, &values);
    let mean = chance.iter().sum::<usize>() as f64 / chance.len() as f64;
    let reached = chance.iter().filter(|&&by| by >= best).count();
    println!(
        "by chance the best of {} gives {mean:.1} on average, {} in one shuffle of twenty; {best} or more in {reached} of {SHUFFLES}",
        readings.len(),
        chance[chance.len() * 19 / 20]
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO_NAMES: &str = r#"
anabranch = 1
name = "shared"
world = { duration = "2 s" }
node = [{ name = "a" }, { name = "b" }]
link = [{ name = "wire", between = ["a", "b"], rate = "1 Mbit/s", delay = "$delay", queue = "8 packets" }]
flow = [{ name = "sctp", from = "a", to = "b", workload = { kind = "bulk" }, transport = { protocol = "sctp" } }]
measure = [{ metric = "goodput", flow = "sctp" }]

[parameters]
delay = "10 ms"

[[experiment]]
id = "delays"
replications = 2
sweep = [{ name = "x", points = [
  { x = 1, delay = "10 ms" },
  { x = 2, delay = "20 ms" },
  { x = 3, delay = "10 ms" },
] }]
"#;

    fn plan() -> Plan {
        let request = PlanRequest::new("shared.toml", TWO_NAMES).with(|it| it.seed = 1);
        Plan::new(request).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The third point has the same world as the first: its runs are executed once, and returned
    /// under both names.
    #[test]
    fn a_shared_run_stands_under_the_name_of_each_of_its_points() {
        let plan = plan();
        let mut made = Made::new();
        let all = records(&plan, &mut made, 1).unwrap();
        assert_eq!(made.len(), 4, "two worlds of two replications");
        let units = PlannedRun::all(&plan);
        assert_eq!(all.len(), 6);
        for (unit, record) in units.iter().zip(&all) {
            assert_eq!(record.experiment, unit.experiment.id);
            assert_eq!(record.point, unit.point());
            assert_eq!(record.replication, unit.replication);
        }
        let at = |x: i64| -> Vec<_> {
            let here = all
                .iter()
                .filter(|it| it.point[0].1 == anabranch_scenario::value::SweepValue::Integer(x));
            here.map(|it| it.metrics.clone()).collect()
        };
        assert_eq!(at(1).len(), 2);
        assert_eq!(at(1), at(3));
        assert_ne!(at(1), at(2));
        let again = records(&plan, &mut made, 1).unwrap();
        assert_eq!((again, made.len()), (all, 4), "nothing is run twice");
    }

    #[test]
    fn a_search_has_every_combination_in_the_order_of_its_file() {
        let text =
            "replications = 3\ntables = [\"t\"]\n[axes]\nb = [\"1 s\", \"2 s\"]\na = [1, 2, 3]\n";
        let search = Search::read(text).unwrap();
        assert_eq!((search.replications, search.set.len()), (3, 0));
        let all = search.readings();
        assert_eq!(all.len(), 6);
        assert_eq!(all[0], ["b=1 s", "a=1"]);
        assert_eq!(all[1], ["b=1 s", "a=2"]);
        assert_eq!(all[5], ["b=2 s", "a=3"]);
    }

    /// With three readings, each of which matches two of three values, the best one in a
    /// permutation matches two or three, but never fewer.
    #[test]
    fn chance_is_estimated_by_shuffles_that_keep_the_counts_of_values() {
        let hits = |without: usize| -> Hits {
            (0..3)
                .map(|value| (value.to_string(), value != without))
                .collect()
        };
        let all: Vec<Hits> = (0..3).map(hits).collect();
        let values = all[0].keys().cloned().collect();
        let best = by_chance(&all, &values);
        assert_eq!(best.len(), SHUFFLES);
        assert!(best.iter().all(|best| (2..=3).contains(best)));
        // Each value is matched by two readings, and missed by one. In 3! of 3^3 permutations the
        // three misses fall on three different readings.
        let two = best.iter().filter(|&&best| best == 2).count() as f64 / SHUFFLES as f64;
        assert!((two - 6.0 / 27.0).abs() < 0.02, "{two}");
    }
}
