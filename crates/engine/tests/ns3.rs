//! What ns-3.37 gave for the dumbbell of `yardsticks/ns3`, beside five runs of ours: where it follows the texts, both agree; where it
//! departs from them, the page there says how, and only the direction is held.

use std::collections::BTreeMap;

use anabranch_engine::plan::{Plan, Request, Unit};
use anabranch_engine::sink::Discard;
use anabranch_engine::world;

fn beside(file: &str) -> String {
    let path = format!("{}/../../yardsticks/ns3/{file}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Means of ns-3 by place, condition and metric.
fn theirs() -> BTreeMap<(String, String, String), f64> {
    let text = beside("ns3.csv");
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let key = (cells[0].into(), cells[1].into(), cells[2].into());
        (key, cells[3].parse().expect("a mean"))
    };
    text.lines().skip(1).map(row).collect()
}

/// Means of our goodput and queueing delay at each point of an experiment.
fn ours(experiment: &str) -> BTreeMap<String, (f64, f64)> {
    let plan = Plan::new(Request::new("spec.toml", beside("spec.toml")).with(|it| {
        it.only = vec![experiment.to_owned()];
        it.replications = Some(5);
        it.seed = 1;
    }));
    let plan = plan.unwrap_or_else(|error| panic!("{error}"));
    let mut sums: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for unit in Unit::all(&plan) {
        let record = world::run(&unit, 1, &mut Discard, &[]).expect("a run");
        let point: Vec<String> = record.point.iter().map(|(_, x)| x.to_string()).collect();
        let value = |series, metric| record.value(series, metric).expect("a value");
        let sum = sums.entry(point.join(" loss ")).or_default();
        sum.0 += value("flow", "goodput") / 5.0;
        sum.1 += value("middle", "queue_delay_mean") / 5.0;
    }
    sums
}

fn held(experiment: &str, expected: &[(&str, f64, f64)]) {
    let (ours, theirs) = (ours(experiment), theirs());
    for &(condition, least, most) in expected {
        let key = |metric: &str| (experiment.into(), condition.into(), metric.into());
        let ratio = ours[condition].0 / theirs[&key("goodput")];
        let said = format!("{experiment}, {condition}: {ratio:.3} of ns-3's goodput");
        assert!((least..=most).contains(&ratio), "{said}");
    }
}

#[test]
fn one_flow_alone() {
    let alike = [
        ("newreno loss 0", 0.99, 1.01),
        ("newreno loss 0.001", 0.85, 1.05),
        ("cubic loss 0", 0.99, 1.01),
        ("veno loss 0", 0.99, 1.01),
        ("illinois loss 0", 0.99, 1.01),
        ("illinois loss 0.001", 0.95, 1.08),
        ("westwood loss 0", 0.99, 1.01),
        ("westwood loss 0.001", 0.97, 1.02),
        ("bbr loss 0", 0.96, 1.02),
        ("bbr loss 0.001", 0.9, 1.25),
    ];
    // No Reno-friendly region; the smoothed round-trip time instead of samples; BBR's first version, which gives up at losses.
    let apart = [
        ("cubic loss 0.001", 1.3, 2.2),
        ("vegas loss 0", 1.8, 2.1),
        ("veno loss 0.001", 1.15, 1.6),
        ("bbr loss 0.01", 3.0, 40.0),
    ];
    held("alone", &[&alike[..], &apart[..]].concat());
}

#[test]
fn two_flows_behind_each_discipline() {
    let all = ["fifo", "codel", "fq-codel", "pie"];
    held("disciplines", &all.map(|queue| (queue, 0.75, 1.3)));
}
