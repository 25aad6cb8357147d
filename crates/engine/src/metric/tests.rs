//! Tests of metrics, with values computed by hand.

use anabranch_settings::{Datum, Fallback, Kind};
use anabranch_sim::LinkStats;
use anabranch_transport::{Probe, Sample};
use serde_json::json;

use super::*;
use crate::agent::flow_stats::FlowStats;
use crate::agent::transfers::Transfer;

const SECOND: Nanos = 1_000_000_000;

fn flow_stats(delivered: u64) -> FlowStats {
    let mut flow_stats = FlowStats::default();
    flow_stats.deliver(0, delivered, 0);
    flow_stats
}

/// A window of whole seconds, as in a spec.
fn seconds(window: [u64; 2]) -> serde_json::Value {
    json!(window.map(|second| format!("{second} s")))
}

fn life() -> Life {
    Life {
        start: 0,
        end: 10 * SECOND,
        alone: Some(IdealTransfer {
            delays: [SECOND; 2],
            rates: [8000; 2],
        }),
    }
}

fn outcome(tcp: &[u64], sctp: &[u64]) -> RunOutcome {
    let flow = |name: &str, bytes: &[u64]| FlowOutcome {
        name: name.into(),
        segment: 1000,
        receive_buffer: 0,
        members: bytes.iter().map(|&bytes| flow_stats(bytes)).collect(),
    };
    let link = LinkOutcome {
        name: "wire".into(),
        rate: 8_000.into(),
        members: vec![[LinkStats::default(); 2]],
        watched: Vec::new(),
    };
    RunOutcome {
        flows: vec![flow("tcp", tcp), flow("sctp", sctp)],
        links: vec![link],
        marks: Vec::new(),
        duration: 10 * SECOND,
    }
}

fn measures(wanted: &[MetricSpec]) -> Measures {
    for metric in wanted {
        if let Err(refusal) = make(&kinds(), metric) {
            panic!("{metric:?}: {refusal}");
        }
    }
    Measures::new(&kinds(), wanted)
}

fn measure(wanted: &[MetricSpec], outcome: &RunOutcome) -> Vec<Measure> {
    measures(wanted).values(outcome)
}

fn value(metric: MetricSpec, outcome: &RunOutcome) -> f64 {
    let measures = measure(&[metric], outcome);
    assert_eq!(measures.len(), 1);
    measures[0].value
}

#[test]
fn throughput_increase_is_equation_2() {
    let metric = MetricSpec::new("throughput_increase")
        .with("of", "sctp")
        .with("over", "tcp");
    assert_eq!(value(metric, &outcome(&[1000, 3000], &[2500, 2500])), 25.0);
}

#[test]
fn utilization_is_the_sum_of_throughputs_over_the_rate() {
    let metric = MetricSpec::new("link_utilization").with("link", "wire");
    // 5000 bytes in 10 s are 4000 bit/s, which is half of 8000.
    assert_eq!(value(metric, &outcome(&[1000], &[4000])), 50.0);
}

#[test]
fn utilization_over_a_window_is_between_its_marks() {
    let mark = |second: u64, wire, payload| snapshot::TrafficSnapshot {
        at: second * SECOND,
        wire: vec![vec![wire]],
        payload,
        segments: payload,
    };
    let mut outcome = outcome(&[1000], &[4000]);
    outcome.marks = vec![mark(2, 600, 500), mark(4, 2200, 1500)];
    let metric = |counting: &str, window: [u64; 2]| {
        MetricSpec::new("link_utilization")
            .with("link", "wire")
            .with("counting", counting)
            .with("window", seconds(window))
    };
    // The link can carry 1000 bytes per second. In the 2 s of the window it carries 1600 of 2000
    // possible bytes on the wire, of which 1000 are payload.
    assert_eq!(value(metric("wire", [2, 4]), &outcome), 80.0);
    assert_eq!(value(metric("unique-payload", [2, 4]), &outcome), 50.0);
    let unseen = metric("wire", [2, 5]);
    assert_eq!(measure(&[unseen], &outcome), [], "nobody looked at 5 s");
}

#[test]
fn marks_are_wanted_at_both_ends_of_each_window_within_the_run() {
    let metric = |window: [u64; 2]| {
        MetricSpec::new("link_utilization")
            .with("link", "wire")
            .with("counting", "wire")
            .with("window", seconds(window))
    };
    let wanted = [metric([2, 4]), metric([0, 4]), metric([3, 12])];
    let seconds: Vec<u64> = measures(&wanted)
        .moments(10 * SECOND)
        .into_iter()
        .map(|at| at / SECOND)
        .collect();
    assert_eq!(seconds, [0, 2, 3, 4, 10]);
}

#[test]
fn jain_is_one_for_equals_and_one_nth_for_one_of_n() {
    let metric = |flows: &[&str]| MetricSpec::new("jain_fairness").with("flows", json!(flows));
    assert_eq!(value(metric(&[]), &outcome(&[7, 7], &[7, 7])), 1.0);
    assert_eq!(value(metric(&[]), &outcome(&[0, 0], &[9, 0])), 0.25);
    assert_eq!(
        value(metric(&["sctp[0]", "tcp"]), &outcome(&[4], &[4, 100])),
        1.0
    );
}

#[test]
fn a_measure_without_a_value_is_absent() {
    let metric = MetricSpec::new("throughput_increase")
        .with("of", "sctp")
        .with("over", "tcp");
    assert_eq!(measure(&[metric], &outcome(&[0], &[1])), []);
}

#[test]
fn mean_cwnd_by_time_and_by_samples_within_a_window() {
    let of = |metric: &str| {
        MetricSpec::new(metric)
            .with("flow", "tcp")
            .with("window", seconds([2, 6]))
    };
    let wanted = [
        of("mean_cwnd"),
        of("mean_cwnd").with("weighting", "samples"),
        of("segments_sent"),
    ];
    let mut outcome = outcome(&[0], &[0]);
    let flow_stats = &mut outcome.flows[0].members[0];
    flow_stats.observers = measures(&wanted).observers("tcp", life());
    let mut sample = |at, probe, value| {
        flow_stats.sample(Sample {
            at,
            probe,
            index: 0,
            value,
        })
    };
    // cwnd is 1000 bytes until 3 s, 2000 until 5 s, and then 4000, so the mean over 2 to 6 s is
    // (1 + 2 * 2 + 4) / 4 segments.
    sample(0, Probe::Cwnd, 1000.0);
    sample(3 * SECOND, Probe::Cwnd, 2000.0);
    sample(5 * SECOND, Probe::Cwnd, 4000.0);
    for second in 0..10 {
        sample(second * SECOND, Probe::Sent, second as f64);
    }
    sample(4 * SECOND, Probe::Retransmitted, 1.0);
    flow_stats.close(10 * SECOND);
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

/// Values of metrics of the flow `tcp`, after events were added to its statistics.
fn told(wanted: &[MetricSpec], tell: impl Fn(&mut FlowStats)) -> Vec<(String, f64)> {
    let mut outcome = outcome(&[0], &[0]);
    let flow_stats = &mut outcome.flows[0].members[0];
    flow_stats.observers = measures(wanted).observers("tcp", life());
    tell(flow_stats);
    flow_stats.close(10 * SECOND);
    let values = measure(wanted, &outcome).into_iter();
    values.map(|it| (it.metric, it.value)).collect()
}

fn named(values: &[(&str, f64)]) -> Vec<(String, f64)> {
    let values = values.iter();
    values
        .map(|&(name, value)| (name.to_owned(), value))
        .collect()
}

#[test]
fn transfers_have_times_and_slowdowns() {
    let of = |metric: &str| {
        MetricSpec::new(metric)
            .with("flow", "tcp")
            .with("statistic", json!(["mean", "p50", "count"]))
    };
    let wanted = [of("flow_completion_time"), of("slowdown")];
    let tell = |flow_stats: &mut FlowStats| {
        // Without other traffic, the transfers of 1000 and 2000 bytes take 2 and 3 s: 1 s of delay,
        // and the transmission at 1000 bytes per second. The transfer with an answer takes 2 s in
        // each direction.
        let transfers = [(0, 2, [1000, 0]), (1, 7, [2000, 0]), (2, 10, [1000, 1000])];
        for (begin, end, sizes) in transfers {
            let transfer = Transfer {
                begin: begin * SECOND,
                end: end * SECOND,
                sizes,
            };
            for observing in &mut flow_stats.observers {
                observing.observer.transfer(&transfer);
            }
        }
    };
    let expected = [
        ("flow_completion_time_mean", 16.0 / 3.0),
        ("flow_completion_time_p50", 6.0),
        ("flow_completion_time_count", 3.0),
        ("slowdown_mean", 5.0 / 3.0),
        ("slowdown_p50", 2.0),
        ("slowdown_count", 3.0),
    ];
    assert_eq!(told(&wanted, tell), named(&expected));
}

#[test]
fn delays_are_of_the_window_in_which_messages_arrive() {
    let wanted = [MetricSpec::new("one_way_delay")
        .with("flow", "tcp")
        .with("statistic", "p100")
        .with(
            "windows",
            json!({ "early": seconds([0, 3]), "late": seconds([3, 9]) }),
        )];
    let tell = |flow_stats: &mut FlowStats| {
        for (second, delay) in [(1, 2), (2, 4), (3, 1), (9, 8)] {
            flow_stats.message(second * SECOND, Some(delay * SECOND));
        }
    };
    let expected = [
        ("one_way_delay_early_p100", 4.0),
        ("one_way_delay_late_p100", 1.0),
    ];
    assert_eq!(told(&wanted, tell), named(&expected));
}

#[test]
fn percentiles_of_a_probe_weigh_by_time_or_by_samples() {
    let of = |name: &str, weighting: &str| {
        MetricSpec::new("percentiles")
            .with("name", name)
            .with("flow", "tcp")
            .with("probe", "cwnd")
            .with("weighting", weighting)
            .with("statistic", "p50")
    };
    let tell = |flow_stats: &mut FlowStats| {
        // The value is 1 for 1 s, 2 for 1 s, and 3 for 8 s.
        for (second, value) in [(0, 1.0), (1, 2.0), (2, 3.0)] {
            flow_stats.sample(Sample {
                at: second * SECOND,
                probe: Probe::Cwnd,
                index: 0,
                value,
            });
        }
    };
    let wanted = [of("stood", "time"), of("changed", "samples")];
    let expected = [("stood_p50", 3.0), ("changed_p50", 2.0)];
    assert_eq!(told(&wanted, tell), named(&expected));
}

#[test]
fn one_word_or_several_are_taken_of_a_probe() {
    let of = |take: serde_json::Value| {
        MetricSpec::new("probe")
            .with("name", "window")
            .with("flow", "tcp")
            .with("probe", "cwnd")
            .with(
                "windows",
                json!({ "early": seconds([0, 2]), "late": seconds([2, 9]) }),
            )
            .with("statistic", take)
    };
    let tell = |flow_stats: &mut FlowStats| {
        for (second, value) in [(0, 1.0), (1, 4.0), (2, 3.0)] {
            flow_stats.sample(Sample {
                at: second * SECOND,
                probe: Probe::Cwnd,
                index: 0,
                value,
            });
        }
    };
    let one = [("window_early", 4.0), ("window_late", 3.0)];
    assert_eq!(told(&[of(json!("most"))], tell), named(&one));
    assert_eq!(told(&[of(json!(["most"]))], tell), named(&one));
    // The values of one statistic in all windows should precede those of the next statistic. The
    // sample at 2 s belongs to the late window, in which the value 4 has no duration.
    let several = [
        ("window_most_early", 4.0),
        ("window_most_late", 3.0),
        ("window_sample_mean_early", 2.5),
        ("window_sample_mean_late", 3.0),
    ];
    assert_eq!(
        told(&[of(json!(["most", "sample-mean"]))], tell),
        named(&several)
    );
    let packets = |take: serde_json::Value| {
        measures(&[MetricSpec::new("packets")
            .with("flow", "tcp")
            .with("statistic", take)])
    };
    let names = |measures: Measures| format!("{measures:?}");
    assert_eq!(
        names(packets(json!("sent"))),
        names(packets(json!(["sent"])))
    );
    let both = names(packets(json!(["sent", "mean-delay"])));
    assert!(
        both.contains("packets_sent") && both.contains("mean_delay"),
        "{both}"
    );
}

/// A valid value of a kind.
fn sample(kind: &Kind) -> Datum {
    match kind {
        Kind::Name(_) | Kind::Text(_) => Datum::word("tcp"),
        Kind::Registered(words) => Datum::word(words()[0].name),
        Kind::Choice(words) => Datum::word(words[0].name),
        Kind::List(item) => Datum::List(vec![sample(item)]),
        Kind::Tuple(kinds) => Datum::List(kinds.iter().map(sample).collect()),
        _ => Datum::Whole(1),
    }
}

#[test]
fn every_metric_says_what_it_is_and_refuses_what_it_does_not_have() {
    for entry in KINDS {
        let variant = entry.variant;
        assert!(!variant.text().is_empty(), "{}", variant.name);
        let unknown = [("no_such_thing".to_owned(), Datum::Flag(true))];
        assert!(kinds().build(variant.name, &unknown, ()).is_err());
        // The required parameters should be sufficient to build the metric and to name its values.
        let required = variant.parameters.iter();
        let required = required.filter(|it| it.fallback == Fallback::Required);
        let given = required.map(|it| (it.name.to_owned(), sample(&it.kind)));
        let made = kinds().build(variant.name, &given.collect::<Vec<_>>(), ());
        let names = made.map(|made| made.names());
        assert!(
            names.as_ref().is_ok_and(|names| !names.is_empty()),
            "{names:?}"
        );
    }
    for (parameters, words) in [
        (
            json!({ "window": ["2 s", "1 s"] }),
            "must begin before it ends",
        ),
        (
            json!({ "window": ["1 s", "2 s"], "windows": { "a": ["1 s", "2 s"] } }),
            "one of them",
        ),
        (
            json!({ "windows": { "a b": ["1 s", "2 s"] } }),
            "letters, digits",
        ),
    ] {
        let mut metric = MetricSpec::new("goodput").with("flow", "tcp");
        for (name, value) in parameters.as_object().into_iter().flatten() {
            metric = metric.with(name, value.clone());
        }
        let refusal = make(&kinds(), &metric)
            .err()
            .map(|refusal| refusal.to_string());
        assert!(
            refusal.as_deref().is_some_and(|text| text.contains(words)),
            "{refusal:?}"
        );
    }
}
