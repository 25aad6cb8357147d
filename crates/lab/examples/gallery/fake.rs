//! Fabricated results with plausible values, for viewing and testing outputs.

use std::sync::Arc;

use anabranch_engine::plan::{Plan, PlanRequest};
use anabranch_lab::papers;
use anabranch_report::reference::Reference;
use anabranch_scenario::Spec;
use anabranch_scenario::records::{
    Manifest, Measure, Results, RunRecord, SeriesRecord, SeriesSample,
};
use anabranch_scenario::value::{Point, SweepValue};

/// Spec for which results are fabricated.
pub const PAPER: &str = include_str!("../../carried/papers/alamgir2002/paper.toml");

/// The reference values of the paper.
pub fn reference() -> Reference {
    let paper = papers::carried("alamgir2002").expect("a paper of the program");
    let loaded = paper.reference(&spec(PAPER)).expect("its files");
    loaded.reference
}

/// Parses a spec in the same way as for a run.
pub fn spec(text: &str) -> Spec {
    let request = PlanRequest::new("alamgir2002.toml", text);
    Plan::new(request)
        .unwrap_or_else(|error| panic!("{error}"))
        .spec
}

/// Uniform random numbers in 0..1 from a linear congruential generator.
pub struct Dice(u64);

impl Dice {
    /// Creates a generator with this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn roll(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A random number with approximately normal distribution: mean 0, standard deviation 1.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.roll()).sum::<f64>() - 6.0
    }
}

/// Fabricates results for a spec from [`spec`].
pub fn results(spec: Spec, replications: u32) -> Results {
    let mut records = Vec::new();
    let wide: [(i64, [f64; 3]); 4] = [
        (2, [22.9, 22.2, 0.9886]),
        (4, [22.2, 22.4, 0.9886]),
        (6, [21.9, 19.3, 0.9883]),
        (8, [22.8, 16.3, 0.9875]),
    ];
    let narrow: [(i64, [f64; 3]); 4] = [
        (2, [45.0, 96.0, 0.967]),
        (4, [32.6, 97.2, 0.974]),
        (6, [26.6, 96.7, 0.975]),
        (8, [28.7, 96.3, 0.966]),
    ];
    for (experiment, means, shift) in [
        ("table-2", wide, 0.0),
        ("table-2-as-ns2", wide, 0.0),
        ("table-2-rfc2960", wide, 4.0),
        ("table-3", narrow, 0.0),
        ("table-3-rfc2960", narrow, -6.0),
    ] {
        for (x, mean) in means {
            for replication in 0..replications {
                records.push(table_record(experiment, x, mean, shift, replication));
            }
        }
    }
    records.extend((0..replications).map(two_sources_record));
    records.push(record("loss-8", Vec::new(), 0, Vec::new()));
    let mut series = Vec::new();
    two_sources_series("tcp", 17, &mut series);
    two_sources_series("sctp", 29, &mut series);
    throughput_series(&mut series);
    loss_series("tcp", 0.0, 4.0, 1, &mut series);
    loss_series("sctp", 0.5, 4.5, 2, &mut series);
    let (first, second) = (sample(2.33661, 1.0), sample(2.84086, 1.0));
    series.push(one("loss-8", "tcp-access", "drop", vec![first]));
    series.push(one("loss-8", "sctp-access", "drop", vec![second]));
    Results {
        manifest: Manifest {
            version: "0.1.0".to_owned(),
            commit: Some("0000000".to_owned()),
            name: spec.name.clone(),
            spec: PAPER.to_owned(),
            overrides: Vec::new(),
            only: Vec::new(),
            files: Default::default(),
            spec_hash: "0".repeat(64),
            seed: 1,
            record_all: false,
            added: Vec::new(),
            live: Vec::new(),
            replications: spec
                .experiments
                .iter()
                .map(|e| (e.id.clone(), e.replications.min(replications)))
                .collect(),
            runs: records.len() as u64,
            packet_hops: records.iter().map(|record| record.packet_hops).sum(),
        },
        spec,
        records,
        series: Arc::new(series),
    }
}

fn record(experiment: &str, point: Point, replication: u32, metrics: Vec<Measure>) -> RunRecord {
    RunRecord {
        experiment: experiment.to_owned(),
        point,
        replication,
        metrics,
        events: 1_000_000,
        packet_hops: 600_000,
        simulated: 500.0,
        failures: Vec::new(),
    }
}

fn measure(series: &str, metric: &str, value: f64, unit: &str) -> Measure {
    Measure {
        series: series.to_owned(),
        metric: metric.to_owned(),
        value,
        unit: unit.to_owned(),
    }
}

fn table_record(
    experiment: &str,
    x: i64,
    mean: [f64; 3],
    shift: f64,
    replication: u32,
) -> RunRecord {
    let mut dice = Dice::new(u64::from(replication) * 100 + x as u64);
    let spread = 9.0 / (x as f64 / 2.0).sqrt();
    let metrics = vec![
        measure(
            "sctp over tcp",
            "throughput_increase",
            mean[0] + shift + spread * dice.normal(),
            "%",
        ),
        measure(
            "all",
            "link_utilization",
            mean[1] + 0.1 * shift + 0.8 * dice.normal(),
            "%",
        ),
        measure(
            "all",
            "jain_fairness",
            (mean[2] - 0.001 * shift + 0.006 * dice.normal()).min(1.0),
            "1",
        ),
    ];
    record(
        experiment,
        vec![("sources".to_owned(), SweepValue::Integer(x))],
        replication,
        metrics,
    )
}

fn two_sources_record(replication: u32) -> RunRecord {
    let mut dice = Dice::new(u64::from(replication) + 7);
    let metrics = vec![
        measure("tcp", "mean_cwnd", 9.4 + 0.4 * dice.normal(), "segments"),
        measure("sctp", "mean_cwnd", 10.5 + 0.6 * dice.normal(), "segments"),
        measure(
            "tcp",
            "segments_sent",
            (1700.0 + 150.0 * dice.normal()).round(),
            "segments",
        ),
        measure(
            "sctp",
            "segments_sent",
            (2050.0 + 180.0 * dice.normal()).round(),
            "segments",
        ),
        measure(
            "tcp",
            "timeouts",
            (3.4 + 1.5 * dice.normal()).round().max(0.0),
            "1",
        ),
        measure(
            "sctp",
            "timeouts",
            (2.3 + 1.2 * dice.normal()).round().max(0.0),
            "1",
        ),
    ];
    record("two-sources", Vec::new(), replication, metrics)
}

fn sample(time: f64, value: f64) -> SeriesSample {
    SeriesSample {
        index: 0,
        time,
        value,
    }
}

fn one(experiment: &str, entity: &str, probe: &str, samples: Vec<SeriesSample>) -> SeriesRecord {
    SeriesRecord {
        experiment: experiment.to_owned(),
        point: Vec::new(),
        replication: 0,
        entity: entity.to_owned(),
        member: 0,
        probe: probe.to_owned(),
        samples,
    }
}

/// Appends a sawtooth congestion window: each round trip sends one window, and some lose a segment.
fn two_sources_series(flow: &str, seed: u64, out: &mut Vec<SeriesRecord>) {
    let mut dice = Dice::new(seed);
    let (mut cwnd, mut ssthresh, mut number, mut now) = (2.0_f64, 45.0_f64, 0.0, 0.3);
    let (mut sent, mut again, mut acks, mut windows, mut thresholds) =
        (vec![], vec![], vec![], vec![], vec![]);
    while now < 150.0 {
        windows.push(sample(now, cwnd * 1448.0));
        thresholds.push(sample(now, ssthresh * 1448.0));
        let lost = dice.roll() < 0.015 * cwnd;
        for k in 0..cwnd as u32 {
            let at = now + 0.006 * f64::from(k);
            sent.push(sample(at, number));
            number += 1.0;
            acks.push(sample(at + 0.512, number));
        }
        now += 0.512;
        if lost {
            again.push(sample(now + 0.01, number - 1.0));
            ssthresh = (cwnd / 2.0).max(2.0);
            cwnd = ssthresh;
        } else {
            cwnd = if cwnd < ssthresh {
                (cwnd * 2.0).min(ssthresh)
            } else {
                cwnd + 1.0
            };
        }
    }
    acks.retain(|ack| ack.time < 150.0);
    for (probe, samples) in [
        ("sent", sent),
        ("retransmitted", again),
        ("cumulative_ack", acks),
        ("cwnd", windows),
        ("ssthresh", thresholds),
    ] {
        out.push(one("two-sources", flow, probe, samples));
    }
}

fn throughput_series(out: &mut Vec<SeriesRecord>) {
    let mut dice = Dice::new(5);
    let bits = |second: u32, dice: &mut Dice| {
        if second < 3 {
            6e5 * f64::from(second)
        } else {
            4e5 + 2e5 * dice.roll()
        }
    };
    let samples = (0..40)
        .map(|second| sample(f64::from(second), bits(second, &mut dice)))
        .collect();
    out.push(one("two-sources", "satellite", "throughput", samples));
}

/// Appends the packets around the loss of segment 8 (number 7): slow start from two segments, with
/// 252 ms in each direction and 6 ms between segments. The segment is sent again after the fourth
/// report of the gap.
fn loss_series(flow: &str, start: f64, halved: f64, growth: u32, out: &mut Vec<SeriesRecord>) {
    let mut lists: [Vec<SeriesSample>; 6] = Default::default();
    let [sent, again, received, advancing, repeating, cwnd] = &mut lists;
    let (there, back) = (0.258, 0.2575);
    let mut window = 2.0;
    cwnd.push(sample(start, window * 1448.0));
    let mut rounds = vec![
        (start + 1.3, 0, 2),
        (start + 1.816, 2, 4),
        (start + 2.332, 6, 8),
    ];
    for (at, first, count) in rounds.drain(..) {
        for k in 0..count {
            let (number, time) = (f64::from(first + k), at + 0.006 * f64::from(k));
            sent.push(sample(time, number));
            if first + k < 7 {
                received.push(sample(time + there, number));
                advancing.push(sample(time + there + back, number + 1.0));
                window += 1.0;
                cwnd.push(sample(time + there + back, window * 1448.0));
            } else if first + k > 7 {
                received.push(sample(time + there, number));
                repeating.push(sample(time + there + back, 7.0));
            }
        }
    }
    let detected = start + 2.88;
    again.push(sample(detected, 7.0));
    received.push(sample(detected + there, 7.0));
    cwnd.push(sample(detected, halved * 1448.0));
    for k in 0..2 {
        let (number, time) = (f64::from(14 + k), start + 2.8475);
        sent.push(sample(time, number));
        received.push(sample(time + there + 0.006 * f64::from(k), number));
        repeating.push(sample(time + there + back + 0.006 * f64::from(k), 7.0));
    }
    let repaired = detected + there + back;
    advancing.push(sample(repaired, 16.0));
    let mut value = halved;
    for step in 0..5 {
        value = if growth == 1 {
            value + 1.0 / value
        } else {
            value + 1.0
        };
        cwnd.push(sample(
            repaired + 0.012 * f64::from(step) + f64::from(step.min(1)) * 0.49,
            value * 1448.0,
        ));
    }
    for (probe, mut samples) in [
        "sent",
        "retransmitted",
        "received",
        "cumulative_ack",
        "duplicate_ack",
        "cwnd",
    ]
    .into_iter()
    .zip(lists)
    {
        samples.sort_by(|a, b| a.time.total_cmp(&b.time));
        out.push(one("loss-8", flow, probe, samples));
    }
}
