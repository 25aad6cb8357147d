//! Comparison of means over five runs of this project with the means of ns-3.37 and of Linux's TCP,
//! which are read from the folders `validation/ns3` and `validation/linux`. If ns-3.37 follows the
//! specifications, the two simulators should agree. If it differs from them, the page in its folder
//! describes the difference, and only the direction of the effect is checked.

use std::collections::BTreeMap;

use anabranch_engine::plan::{Plan, PlanRequest, PlannedRun};
use anabranch_engine::sink::NullSink;
use anabranch_engine::world;

/// A folder of `validation/`: its file of mean values, its spec, and the mapping from the
/// coordinates of a point to the conditions in the file.
struct Baseline {
    folder: &'static str,
    condition: fn(&[String]) -> String,
}

const NS3: Baseline = Baseline {
    folder: "ns3",
    condition: |point| point.join(" loss "),
};
const LINUX: Baseline = Baseline {
    folder: "linux",
    condition: |point| format!("{} {} loss {}", point[0], point[1], point[2]),
};

impl Baseline {
    fn read(&self, file: &str) -> String {
        let folder = self.folder;
        let path = format!(
            "{}/../../validation/{folder}/{file}",
            env!("CARGO_MANIFEST_DIR")
        );
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Mean results of the other program, by place, condition and metric.
    fn theirs(&self) -> BTreeMap<(String, String, String), f64> {
        let text = self.read(&format!("{}.csv", self.folder));
        let row = |line: &str| {
            let cells: Vec<&str> = line.split(',').collect();
            let key = (cells[0].into(), cells[1].into(), cells[2].into());
            (key, cells[3].parse().expect("a mean"))
        };
        text.lines().skip(1).map(row).collect()
    }

    /// Mean values of a metric in our runs, at each point of an experiment.
    fn ours(&self, experiment: &str, metric: &str) -> BTreeMap<String, f64> {
        let plan = Plan::new(
            PlanRequest::new("spec.toml", self.read("spec.toml")).with(|it| {
                it.only = vec![experiment.to_owned()];
                it.replications = Some(5);
                it.seed = 1;
            }),
        );
        let plan = plan.unwrap_or_else(|error| panic!("{error}"));
        let mut sums: BTreeMap<String, f64> = BTreeMap::new();
        for unit in PlannedRun::all(&plan) {
            let record = world::run(&unit, 1, &mut NullSink, &[]).expect("a run");
            let point: Vec<String> = record.point.iter().map(|(_, x)| x.to_string()).collect();
            let value = record.value("flow", metric).expect("a value");
            *sums.entry((self.condition)(&point)).or_default() += value / 5.0;
        }
        sums
    }

    /// Checks that the ratio of our mean to theirs is between the two given numbers. `named` has
    /// the name of the metric in our results and in theirs.
    fn held(&self, experiment: &str, named: [&str; 2], expected: &[(&str, f64, f64)]) {
        let (ours, theirs) = (self.ours(experiment, named[0]), self.theirs());
        for &(condition, least, most) in expected {
            let key = (experiment.into(), condition.into(), named[1].into());
            let ratio = ours[condition] / theirs[&key];
            let said = format!(
                "{experiment}, {condition}: {ratio:.3} of their {}",
                named[1]
            );
            assert!((least..=most).contains(&ratio), "{said}");
        }
    }
}

const GOODPUT: [&str; 2] = ["goodput", "goodput"];

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
    // Differences in ns-3: CUBIC has no Reno-friendly region, the smoothed round-trip time is used
    // in place of samples, and BBR is the first version, which collapses when packets are lost.
    let apart = [
        ("cubic loss 0.001", 1.3, 2.2),
        ("vegas loss 0", 1.8, 2.1),
        ("veno loss 0.001", 1.15, 1.6),
        ("bbr loss 0.01", 3.0, 40.0),
    ];
    NS3.held("alone", GOODPUT, &[&alike[..], &apart[..]].concat());
}

#[test]
fn two_flows_behind_each_discipline() {
    let all = ["fifo", "codel", "fq-codel", "pie"];
    NS3.held("disciplines", GOODPUT, &all.map(|queue| (queue, 0.75, 1.3)));
}

/// Without loss, this project and Linux should fill the link with similar windows. With losses,
/// each mean varies at random, because it has only five or six runs.
#[test]
fn linux_alone() {
    let (filled, random) = ((0.99, 1.01), (0.75, 1.3));
    let goodput = |control: &str| {
        ["10", "50"].map(|path| {
            ["0", "0.001", "0.01"].map(|loss| {
                let (least, most) = if loss == "0" { filled } else { random };
                (format!("{control} {path} loss {loss}"), least, most)
            })
        })
    };
    let all = ["reno", "cubic"].map(goodput);
    let all: Vec<_> = all.iter().flatten().flatten().collect();
    let expected: Vec<_> = all
        .iter()
        .map(|(name, a, b)| (name.as_str(), *a, *b))
        .collect();
    LINUX.held("alone", GOODPUT, &expected);
    let windows = [
        ("reno 10 loss 0", 0.97, 1.03),
        ("reno 50 loss 0", 0.97, 1.03),
    ];
    LINUX.held("alone", ["mean_cwnd", "cwnd"], &windows);
}
