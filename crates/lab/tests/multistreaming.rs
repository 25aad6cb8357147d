//! Expected results of the papers on multistreaming, from their own specs with few replications.

use anabranch_engine::plan::{Plan, PlanRequest, PlannedRun};
use anabranch_engine::sink::NullSink;
use anabranch_engine::world;
use anabranch_lab::papers::carried;
use anabranch_report::derive;
use anabranch_scenario::records::RunRecord;

/// Round-trip time of atiquzzaman2002 in seconds: 260 ms in each direction, plus the transmission
/// of a packet of 1500 bytes and a SACK of 48 bytes over two links of 10 Mbit/s.
const ROUND_TRIP: f64 = 2.0 * 0.260 + 2.0 * (1500.0 + 48.0) * 8.0 / 1e7;
/// Size of a packet's data in the receive buffer, bytes.
const CHUNK: f64 = 1468.0;

fn spec(name: &str) -> String {
    carried(name)
        .and_then(|paper| paper.text())
        .expect("its spec")
}

/// Runs an experiment of a spec at the points selected by `wants`, with the given number of
/// replications.
fn run(
    text: &str,
    experiment: &str,
    replications: u32,
    wants: impl Fn(&[String]) -> bool,
) -> (Plan, Vec<RunRecord>) {
    let request = PlanRequest::new("test.toml", text).with(|it| {
        it.only = vec![experiment.to_owned()];
        it.replications = Some(replications);
        it.seed = 1;
    });
    let plan = Plan::new(request).unwrap_or_else(|error| panic!("{error}"));
    let wanted = |unit: &PlannedRun<'_>| {
        let x: Vec<String> = unit.point().iter().map(|(_, x)| x.to_string()).collect();
        wants(&x)
    };
    let units = PlannedRun::all(&plan).into_iter().filter(wanted);
    let runs = units
        .map(|unit| world::run(&unit, 1, &mut NullSink, &[]).expect("a run"))
        .collect();
    (plan, runs)
}

/// Mean of a measure of the flow over the replications at a point.
fn mean(runs: &[RunRecord], x: &[&str], metric: &str) -> f64 {
    let here = |run: &&RunRecord| {
        run.point
            .iter()
            .map(|(_, x)| x.to_string())
            .eq(x.iter().copied())
    };
    let values: Vec<f64> = runs
        .iter()
        .filter(here)
        .filter_map(|run| run.value("sctp", metric))
        .collect();
    assert!(!values.is_empty(), "nothing at {x:?}");
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
fn without_losses_goodput_is_the_buffers_packets_in_each_round_trip() {
    let buffers = ["5", "10", "15", "35", "60", "100"];
    let (_, runs) = run(&spec("atiquzzaman2002"), "no-loss", 1, |x| {
        x[0] == "0" && buffers.contains(&x[2].as_str())
    });
    for streams in ["1", "4"] {
        for buffer in buffers {
            let packets = (buffer.parse::<f64>().expect("a number") * 1024.0 / CHUNK).floor();
            let expected = packets / ROUND_TRIP;
            let rate = mean(&runs, &["0", streams, buffer], "segment_rate");
            assert!(
                (rate / expected - 1.0).abs() < 0.02,
                "s = {streams}, B = {buffer}K: {rate} against {expected}"
            );
        }
    }
}

/// A buffer of 660 KiB holds 460 packets, which allows 880 packets per second; the link carries
/// 833.
#[test]
fn goodput_grows_with_the_buffer_up_to_the_rate_of_the_link() {
    let text = spec("atiquzzaman2002")
        .replace("\"100 KiB\"", "\"660 KiB\"")
        .replace(
            "window = [\"0.5 s\", \"400 s\"]",
            "window = [\"350 s\", \"400 s\"]",
        );
    let (_, runs) = run(&text, "no-loss", 1, |x| x == ["0", "4", "100"]);
    let rate = mean(&runs, &["0", "4", "100"], "segment_rate");
    let link = 1e7 / 1500.0 / 8.0;
    assert!((rate / link - 1.0).abs() < 0.02, "{rate} against {link}");
}

#[test]
fn the_buffer_limits_at_15_kib_and_congestion_control_at_35() {
    let (_, runs) = run(&spec("atiquzzaman2002"), "limits", 3, |x| {
        x[0] == "0.01" && x[2] == "4"
    });
    let at = |buffer, metric| mean(&runs, &["0.01", buffer, "4"], metric);
    for metric in ["rwnd_limited_share", "rwnd_below_mtu"] {
        let (small, large) = (at("15", metric), at("35", metric));
        assert!(
            small > 0.4 && large < 0.1,
            "{metric}: {small} at 15K, {large} at 35K"
        );
    }
    // The window is far below the size of the larger buffer.
    assert!(at("35", "mean_cwnd") * CHUNK < 0.6 * 35.0 * 1024.0);
}

#[test]
fn four_streams_beat_one_with_a_small_buffer_and_equal_it_with_a_large_one() {
    let (plan, runs) = run(&spec("atiquzzaman2002"), "buffer", 3, |x| {
        x[0] == "0.02"
            && ["1", "4"].contains(&x[1].as_str())
            && ["15", "100"].contains(&x[2].as_str())
    });
    let derived = derive::records(&plan.spec, &runs);
    let increases = |buffer: &str| -> Vec<f64> {
        let here = derived
            .iter()
            .filter(|record| record.experiment == "advantage");
        let here = here.filter(|record| {
            record.point[1].1.to_string() == "4" && record.point[2].1.to_string() == buffer
        });
        here.filter_map(|record| record.value("sctp", "goodput_increase"))
            .collect()
    };
    let (small, large) = (increases("15"), increases("100"));
    assert_eq!((small.len(), large.len()), (3, 3));
    assert!(
        small.iter().all(|increase| *increase > 5.0),
        "B = 15K: {small:?} %"
    );
    assert!(
        large.iter().all(|increase| increase.abs() < 2.0),
        "B = 100K: {large:?} %"
    );
}

#[test]
fn more_streams_pay_more_as_the_error_rate_grows_and_less_as_the_path_does() {
    let (plan, runs) = run(&spec("tsunoda2007"), "streams", 1, |x| {
        ["1", "6"].contains(&x[0].as_str()) && x[1] != "0.1" && ["1", "8"].contains(&x[2].as_str())
    });
    let derived = derive::records(&plan.spec, &runs);
    let increases: Vec<RunRecord> = derived
        .into_iter()
        .filter(|record| record.experiment == "increase")
        .collect();
    let at = |hops, error| mean(&increases, &[hops, error, "8"], "goodput_increase");
    let one_hop = ["0.01", "0.02", "0.05"].map(|error| at("1", error));
    assert!(
        one_hop.is_sorted_by(|a, b| a + 5.0 < *b),
        "H = 1: {one_hop:?} %"
    );
    for (error, one) in ["0.02", "0.05"].into_iter().zip(&one_hop[1..]) {
        let six = at("6", error);
        assert!(
            six > 0.0 && six + 5.0 < *one,
            "e = {error}: {six} % at H = 6, {one} % at H = 1"
        );
    }
}

#[test]
fn streams_climb_when_the_links_turn_bad_and_are_one_again_when_they_are_good() {
    let (_, runs) = run(&spec("tsunoda2007"), "adaptive", 2, |x| {
        x[0] == "1" && ["4 streams", "adaptive-step"].contains(&x[1].as_str())
    });
    let at = |allocation, metric| mean(&runs, &["1", allocation], metric);
    let step = |metric| at("adaptive-step", metric);
    assert_eq!(
        (step("streams_while_good"), step("streams_afterwards")),
        (1.0, 1.0)
    );
    assert!(
        step("streams_while_bad") > 7.0,
        "{}",
        step("streams_while_bad")
    );
    assert_eq!(
        (step("fewest_streams"), step("most_streams")),
        (1.0, 10.0),
        "ten were negotiated"
    );
    assert!(
        step("stream_limits_met") > 0.0,
        "growth past ten is reported"
    );
    let (adaptive, four) = (
        step("segments_delivered"),
        at("4 streams", "segments_delivered"),
    );
    assert!(adaptive >= 0.995 * four, "{adaptive} against {four}");
}

/// Four hops: three links of 10 ms between two ground links of 1 ms.
#[test]
fn a_chain_joins_each_member_to_the_next_and_last_is_its_end() {
    let text = r#"
anabranch = 1
name = "chain"
[world]
duration = "10 s"
[[node]]
name = "host"
count = 2
[[node]]
name = "hop"
count = 4
[[link]]
name = "up"
between = ["host[0]", "hop[0]"]
rate = "8 Mbit/s"
delay = "1 ms"
queue = "10 packets"
[[link]]
name = "hops"
between = ["hop", "hop"]
rate = "8 Mbit/s"
delay = "10 ms"
queue = "10 packets"
[[link]]
name = "down"
between = ["hop[last]", "host[1]"]
rate = "8 Mbit/s"
delay = "1 ms"
queue = "10 packets"
[[flow]]
name = "cbr"
from = "host[0]"
to = "host[1]"
workload = { kind = "cbr", rate = "8 kbit/s", message = "972 B" }
transport = { protocol = "udp" }
[[measure]]
metric = "mean_one_way_delay"
flow = "cbr"
"#;
    let (_, runs) = run(text, "main", 1, |_| true);
    // The transmission of 972 + 28 bytes takes 1 ms on each of five links.
    let delay = runs[0]
        .value("cbr", "mean_one_way_delay")
        .expect("messages arrived");
    assert!(
        (delay - (2.0 * 0.001 + 3.0 * 0.010 + 5.0 * 0.001)).abs() < 1e-6,
        "{delay}"
    );
}
