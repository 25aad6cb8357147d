//! Tests with specs as a researcher would write them; the checked results should not depend on the
//! seed.

use std::path::Path;

use anabranch_engine::plan::{Plan, PlanRequest, PlannedRun};
use anabranch_engine::sink::NullSink;
use anabranch_engine::world;
use anabranch_scenario::records::RunRecord;

/// Runs the first replication of each point of an example's first experiment.
fn run(name: &str) -> Vec<RunRecord> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../examples/{name}.toml"));
    let text = std::fs::read_to_string(path).expect("an example");
    let request = PlanRequest::new(name, text).with(|it| {
        it.replications = Some(1);
    });
    let plan = Plan::new(request).unwrap_or_else(|error| panic!("{error}"));
    let units = PlannedRun::all(&plan);
    let records = units
        .iter()
        .map(|unit| world::run(unit, 1, &mut NullSink, &[]).expect("a run"));
    let records: Vec<RunRecord> = records.collect();
    for record in &records {
        assert_eq!(record.failures, [""; 0], "{name}: {:?}", record.point);
    }
    records
}

/// Values of a metric, point by point.
fn values(records: &[RunRecord], series: &str, metric: &str) -> Vec<f64> {
    let value = |record: &RunRecord| {
        let mut all = record.metrics.iter();
        let found = all.find(|it| it.series == series && it.metric == metric);
        found
            .unwrap_or_else(|| panic!("no {metric} of {series}: {:?}", record.metrics))
            .value
    };
    records.iter().map(value).collect()
}

#[test]
fn web_transfers_take_longer_the_more_the_path_loses() {
    let records = run("web-transfers");
    for flow in ["tcp", "sctp"] {
        for metric in ["flow_completion_time_p50", "flow_completion_time_p99"] {
            let times = values(&records, flow, metric);
            assert!(
                times[0] < times[1] && times[1] < times[2],
                "{flow} {metric}: {times:?}"
            );
        }
        // 400 transfers are expected in 100 s; three standard deviations are 60.
        for count in values(&records, flow, "transfers_complete") {
            assert!((340.0..460.0).contains(&count), "{flow}: {count}");
        }
        // No transfer should be faster than the path.
        for least in values(&records, flow, "slowdown_least") {
            assert!(least >= 1.0, "{flow}: {least}");
        }
    }
    // Without losses only the path causes delay. With losses, objects on ten streams wait less for
    // other objects.
    let [tcp, sctp] =
        ["tcp", "sctp"].map(|flow| values(&records, flow, "flow_completion_time_p50"));
    assert!(sctp[2] < tcp[2], "{sctp:?} {tcp:?}");
}

#[test]
fn codel_takes_the_delay_of_a_full_buffer_away() {
    let records = run("bufferbloat");
    let p95 = values(&records, "game", "one_way_delay_later_p95");
    // A queue of 500 packets of 1500 B at 10 Mbit/s is a delay of 600 ms, and the sawtooth of the
    // window keeps most of it filled; the target of CoDel is 5 ms.
    assert!(p95[0] > 0.4 && p95[1] < 0.05, "{p95:?}");
    assert!(p95[1] > 0.015, "the path alone takes 15 ms: {p95:?}");
    let goodput = values(&records, "download", "goodput");
    assert!(goodput[0] > 9e6 && goodput[1] > 8e6, "{goodput:?}");
    // Marks should have the same effect as drops, but without retransmissions of the download.
    assert!(p95[2] < 0.05 && goodput[2] > 8e6, "{p95:?} {goodput:?}");
    let marks = values(&records, "access", "marks");
    assert!(marks[..2] == [0.0, 0.0] && marks[2] > 10.0, "{marks:?}");
    let again = values(&records, "download", "retransmissions");
    assert!(again[1] > 10.0 && again[2] == 0.0, "{again:?}");
    let delay = values(&records, "access", "queue_delay_p50");
    assert!(
        delay[0] > 0.3 && delay[1] < 0.02 && delay[2] < 0.02,
        "{delay:?}"
    );
}

#[test]
fn an_answer_over_a_satellite_takes_a_round_trip_and_slow_start() {
    let records = run("request-response");
    for flow in ["tcp", "sctp"] {
        let median = values(&records, flow, "flow_completion_time_p50");
        // 2 KB are sent in one flight, which takes slightly more than 540 ms. 20 KB take three
        // flights, and 200 KB take more.
        assert!((0.54..0.6).contains(&median[0]), "{flow}: {median:?}");
        assert!(
            median[1] > 1.08 && median[2] > median[1] + 0.54,
            "{flow}: {median:?}"
        );
        let least = values(&records, flow, "flow_completion_time_least");
        assert!(least.iter().all(|&least| least > 0.54), "{flow}: {least:?}");
        // A request, its answer and a second of think time are repeated for 300 s.
        let count = values(&records, flow, "transfers_complete");
        assert!(count[0] > 150.0 && count[2] > 40.0, "{flow}: {count:?}");
    }
    let least = values(&records, "tcp", "slowdown_least");
    assert!(least.iter().all(|&least| least >= 1.0), "{least:?}");
}

#[test]
fn handovers_of_a_leo_path_hold_packets_back() {
    let records = run("leo");
    let goodput = values(&records, "file", "goodput");
    // NewReno, CUBIC and Vegas, each without and with handovers of 100 ms.
    assert!(goodput.iter().all(|&rate| rate > 20e6), "{goodput:?}");
    let slowest = values(&records, "probe", "one_way_delay_p99_9");
    let p50 = values(&records, "probe", "one_way_delay_p50");
    for (point, pair) in slowest.chunks(2).enumerate() {
        // Handovers interrupt at most a hundred milliseconds in each 15 s, which affects the
        // slowest thousandth of the packets.
        assert!(pair[1] > pair[0] + 0.02, "{point}: {slowest:?}");
    }
    // Vegas keeps 2 to 4 packets of 0.24 ms in the queue; the path alone takes 21 to 22 ms.
    assert!((0.021..0.026).contains(&p50[4]), "{p50:?}");
    assert!(p50[0] > 0.026 && p50[2] > 0.026, "{p50:?}");
}

/// A message of 1 MiB takes 0.84 s on the path. Without interleaving a small message waits for the
/// end of the current large one. With interleaving the small message waits only for packets in
/// transit.
#[test]
fn interleaving_takes_small_messages_past_large_ones() {
    let records = run("interleaving");
    let p99 = values(&records, "sctp", "small_p99");
    // The first experiment has six schedulers, each without and with interleaving.
    for (record, age) in records.iter().zip(p99).take(12) {
        let [scheduler, messages] = [0, 1].map(|it| record.point[it].1.to_string());
        // First come, first served keeps the order even with interleaving.
        let waits = !messages.contains("I-DATA") || scheduler.contains("fcfs");
        let fits = if waits { age > 0.5 } else { age < 0.1 };
        assert!(fits, "{scheduler}, {messages}: {age}");
    }
    // No message is abandoned or delayed indefinitely: 20 messages per second arrive for 90 s.
    for count in values(&records, "sctp", "small_count") {
        assert_eq!(count, 1800.0);
    }
}

/// The one-way delay is 282 ms, and a retransmission arrives at least 560 ms after the original.
#[test]
fn frames_that_may_be_abandoned_are_younger() {
    let records = run("frames");
    let [p50, p95] = ["age_p50", "age_p95"].map(|it| values(&records, "frames", it));
    let missing = values(&records, "frames", "lost_messages");
    assert!(p50.iter().all(|age| *age > 0.28), "{p50:?}");
    // With reliable delivery every frame should arrive, and one in twenty frames waits for a
    // retransmission.
    assert_eq!(missing[0], 0.0);
    assert!(p95[0] > 0.8, "{p95:?}");
    // If frames are abandoned after 300 ms, some of 9,300 frames should be missing, and those that
    // arrive should have a lower latency.
    assert!(missing[3] > 200.0 && p95[3] < p95[0], "{missing:?} {p95:?}");
    // Without retransmissions, about one in a hundred frames should be missing.
    assert!((50.0..150.0).contains(&missing[6]), "{missing:?}");
}

/// The two paths carry 10 and 4 Mbit/s, minus headers of 3 %.
#[test]
fn both_paths_at_once_carry_more_than_either() {
    let records = run("concurrent");
    let names: Vec<String> = records.iter().map(|it| it.point[0].1.to_string()).collect();
    let goodput = values(&records, "sctp", "goodput");
    let of = |name: &str| {
        let at = names.iter().position(|it| it.contains(name));
        goodput[at.unwrap_or_else(|| panic!("no {name}: {names:?}"))]
    };
    let sum = of("first path alone") + of("second path alone");
    let whole = goodput[2];
    assert!(
        whole > 0.85 * sum && whole < 1.05 * sum,
        "{whole} of {sum}: {goodput:?}"
    );
    assert!(of("without any of the three") < 0.9 * whole, "{goodput:?}");
}
