//! Tests of ECN: the effect of a marking queue on flows with and without ECN.

use anabranch_engine::plan::{Plan, PlanRequest, PlannedRun};
use anabranch_engine::sink::NullSink;
use anabranch_engine::world;

/// Results of a bulk flow of 30 s over a bottleneck of 5 Mbit/s and 40 ms with CoDel.
#[derive(Debug, PartialEq)]
struct RunData {
    drops: f64,
    marks: f64,
    reductions: f64,
    retransmissions: f64,
    timeouts: f64,
    /// Goodput, Mbit/s.
    goodput: f64,
    least_cwnd: f64,
}

fn run(transport: &str, queue_marks: bool) -> RunData {
    let text = format!(
        "anabranch = 1\nname = \"marks\"\nworld = {{ duration = \"30 s\" }}\n\
         node = [{{ name = \"a\" }}, {{ name = \"b\" }}]\n\
         measure = [\n\
         {{ metric = \"drops\", link = \"wire\" }},\n\
         {{ metric = \"marks\", link = \"wire\" }},\n\
         {{ metric = \"ecn_reductions\", flow = \"f\" }},\n\
         {{ metric = \"retransmissions\", flow = \"f\" }},\n\
         {{ metric = \"timeouts\", flow = \"f\" }},\n\
         {{ metric = \"goodput\", flow = \"f\" }},\n\
         {{ metric = \"percentiles\", name = \"cwnd\", flow = \"f\", probe = \"cwnd\", statistic = [\"least\"], window = [\"10 s\", \"30 s\"] }},\n\
         {{ metric = \"duplicates_received\", flow = \"f\" }},\n\
         ]\n\
         [[link]]\nname = \"wire\"\nbetween = [\"a\", \"b\"]\nrate = \"5 Mbit/s\"\ndelay = \"20 ms\"\n\
         queue = {{ forward = {{ kind = \"codel\", ecn = {queue_marks} }} }}\n\
         [[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\nworkload = {{ kind = \"bulk\" }}\n\
         transport = {{ {transport} }}\n"
    );
    let request = PlanRequest::new("marks.toml", text).with(|it| {
        it.seed = 1;
    });
    let plan = Plan::new(request).unwrap_or_else(|error| panic!("{error}"));
    let record = world::run(&PlannedRun::all(&plan)[0], 1, &mut NullSink, &[]).expect("a run");
    assert_eq!(record.failures, Vec::<String>::new());
    let value = |name: &str| {
        let found = record.metrics.iter().find(|it| it.metric == name);
        found
            .unwrap_or_else(|| panic!("{name}: {:?}", record.metrics))
            .value
    };
    assert_eq!(value("duplicates_received"), 0.0);
    RunData {
        drops: value("drops"),
        marks: value("marks"),
        reductions: value("ecn_reductions"),
        retransmissions: value("retransmissions"),
        timeouts: value("timeouts"),
        goodput: value("goodput") / 1e6,
        least_cwnd: value("cwnd_least"),
    }
}

const TCP: &str = "protocol = \"tcp\", switches = { ecn = ON }, receive_buffer = \"1 MiB\"";
const SCTP: &str = "protocol = \"sctp\", receive_buffer = \"1 MiB\", switches = { ecn = ON }";

#[test]
fn marks_slow_down_without_a_retransmission() {
    for transport in [TCP, SCTP] {
        let seen = run(&transport.replace("ON", "true"), true);
        assert!(seen.marks > 5.0, "{seen:?}");
        assert!(
            seen.reductions > 5.0 && seen.reductions <= seen.marks,
            "{seen:?}"
        );
        assert_eq!(
            (seen.drops, seen.retransmissions, seen.timeouts),
            (0.0, 0.0, 0.0),
            "{seen:?}"
        );
        // Without headers the link carries at most 4.8 Mbit/s. The goodput is lower, because the
        // path holds 25,000 bytes and a halved window does not fill it.
        assert!((4.0..4.9).contains(&seen.goodput), "{seen:?}");
        assert!(seen.least_cwnd < 25_000.0, "{seen:?}");
    }
}

/// If either the sender does not use ECN or the queue does not mark, there should be only drops.
#[test]
fn without_either_end_packets_are_dropped() {
    for transport in [TCP, SCTP] {
        for (sender, queue) in [("false", true), ("true", false), ("false", false)] {
            let seen = run(&transport.replace("ON", sender), queue);
            assert_eq!((seen.marks, seen.reductions), (0.0, 0.0), "{seen:?}");
            assert!(seen.drops > 5.0, "{seen:?}");
            assert!(seen.retransmissions >= seen.drops, "{seen:?}");
        }
    }
}
