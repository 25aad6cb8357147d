//! Measures worked out by hand.

use anabranch_transport::{Probe, Sample};

use super::*;

const SECOND: Nanos = 1_000_000_000;

fn tally(delivered: u64) -> Tally {
    let mut tally = Tally::default();
    tally.deliver(0, delivered, 0);
    tally
}

fn outcome(tcp: &[u64], sctp: &[u64]) -> Outcome {
    let flow = |name: &str, bytes: &[u64]| FlowOutcome {
        name: name.into(),
        segment: 1000,
        receive_buffer: 0,
        members: bytes.iter().map(|&bytes| tally(bytes)).collect(),
    };
    let link = LinkOutcome {
        name: "wire".into(),
        rate: 8_000.into(),
        members: vec![[LinkStats::default(); 2]],
    };
    Outcome {
        flows: vec![flow("tcp", tcp), flow("sctp", sctp)],
        links: vec![link],
        marks: Vec::new(),
        duration: 10 * SECOND,
    }
}

fn value(metric: Metric, outcome: &Outcome) -> f64 {
    let measures = measure(&[metric], outcome);
    assert_eq!(measures.len(), 1);
    measures[0].value
}

#[test]
fn throughput_increase_is_equation_2() {
    let metric = Metric::ThroughputIncrease {
        of: "sctp".into(),
        over: "tcp".into(),
        counting: Counting::default(),
    };
    assert_eq!(value(metric, &outcome(&[1000, 3000], &[2500, 2500])), 25.0);
}

#[test]
fn utilization_is_the_sum_of_throughputs_over_the_rate() {
    let metric = Metric::LinkUtilization {
        link: "wire".into(),
        counting: Counting::UniquePayload,
        window: None,
    };
    // 5000 bytes in 10 s are 4000 bit/s of 8000.
    assert_eq!(value(metric, &outcome(&[1000], &[4000])), 50.0);
}

#[test]
fn utilization_over_a_window_is_between_its_marks() {
    let mark = |second: u64, wire, payload| mark::Mark {
        at: second * SECOND,
        wire: vec![vec![wire]],
        payload,
        segments: payload,
    };
    let mut outcome = outcome(&[1000], &[4000]);
    outcome.marks = vec![mark(2, 600, 500), mark(4, 2200, 1500)];
    let metric = |counting, window: [u64; 2]| Metric::LinkUtilization {
        link: "wire".into(),
        counting,
        window: Some(Window(window.map(|second| Span(second * SECOND)))),
    };
    // The link carries 1000 bytes a second: 1600 of 2000 on the wire, 1000 of them payload.
    assert_eq!(value(metric(Counting::Wire, [2, 4]), &outcome), 80.0);
    assert_eq!(
        value(metric(Counting::UniquePayload, [2, 4]), &outcome),
        50.0
    );
    let unseen = metric(Counting::Wire, [2, 5]);
    assert_eq!(measure(&[unseen], &outcome), [], "nobody looked at 5 s");
}

#[test]
fn marks_are_wanted_at_both_ends_of_each_window_within_the_run() {
    let metric = |window: [u64; 2]| Metric::LinkUtilization {
        link: "wire".into(),
        counting: Counting::Wire,
        window: Some(Window(window.map(|second| Span(second * SECOND)))),
    };
    let wanted = [metric([2, 4]), metric([0, 4]), metric([3, 12])];
    let seconds: Vec<u64> = mark::moments(&wanted, 10 * SECOND)
        .into_iter()
        .map(|at| at / SECOND)
        .collect();
    assert_eq!(seconds, [0, 2, 3, 4, 10]);
}

#[test]
fn jain_is_one_for_equals_and_one_nth_for_one_of_n() {
    let metric = |flows: &[&str]| Metric::JainFairness {
        flows: flows.iter().map(|&flow| flow.to_owned()).collect(),
        counting: Counting::default(),
    };
    assert_eq!(value(metric(&[]), &outcome(&[7, 7], &[7, 7])), 1.0);
    assert_eq!(value(metric(&[]), &outcome(&[0, 0], &[9, 0])), 0.25);
    assert_eq!(
        value(metric(&["sctp[0]", "tcp"]), &outcome(&[4], &[4, 100])),
        1.0
    );
}

#[test]
fn a_measure_without_a_value_is_absent() {
    let metric = Metric::ThroughputIncrease {
        of: "sctp".into(),
        over: "tcp".into(),
        counting: Counting::default(),
    };
    assert_eq!(measure(&[metric], &outcome(&[0], &[1])), []);
}

#[test]
fn mean_cwnd_by_time_and_by_samples_within_a_window() {
    let window = Some(Window([Span(2 * SECOND), Span(6 * SECOND)]));
    let wanted = [
        Metric::MeanCwnd {
            flow: "tcp".into(),
            weighting: Weighting::Time,
            window,
        },
        Metric::MeanCwnd {
            flow: "tcp".into(),
            weighting: Weighting::Samples,
            window,
        },
        Metric::SegmentsSent {
            path: None,
            flow: "tcp".into(),
            window,
        },
    ];
    let mut outcome = outcome(&[0], &[0]);
    let tally = &mut outcome.flows[0].members[0];
    tally.meters = meters(&wanted, "tcp", 0, 10 * SECOND);
    let mut sample = |at, probe, value| {
        tally.sample(Sample {
            at,
            probe,
            index: 0,
            value,
        })
    };
    // 1000 bytes until 3 s, 2000 until 5 s, then 4000: in 2..6 s that is (1 + 2 * 2 + 4) / 4 segments.
    sample(0, Probe::Cwnd, 1000.0);
    sample(3 * SECOND, Probe::Cwnd, 2000.0);
    sample(5 * SECOND, Probe::Cwnd, 4000.0);
    for second in 0..10 {
        sample(second * SECOND, Probe::Sent, second as f64);
    }
    sample(4 * SECOND, Probe::Retransmitted, 1.0);
    tally.close(10 * SECOND);
    let values: Vec<(String, f64)> = measure(&wanted, &outcome)
        .into_iter()
        .map(|m| (m.metric, m.value))
        .collect();
    let expected = [
        ("mean_cwnd", 2.25),
        ("mean_cwnd_samples", 3.0),
        ("segments_sent", 5.0),
    ];
    assert_eq!(
        values,
        expected.map(|(name, value)| (name.to_owned(), value))
    );
}
