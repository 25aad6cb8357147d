//! Tests of SCTP by third-party stacks in a world: each stack should carry everything over a lossy
//! link, and runs should be reproducible byte by byte.

use anabranch_engine::plan::{Plan, PlanRequest, PlannedRun};

fn spec(transport: &str, measure: &str) -> String {
    format!(
        r#"
anabranch = 1
name = "third-party"
world = {{ duration = "20 s" }}
node = [{{ name = "a" }}, {{ name = "b" }}]
link = [{{ name = "wire", between = ["a", "b"], rate = "10 Mbit/s", delay = "20 ms", queue = "40 packets", loss = {{ forward = {{ model = "bernoulli", probability = 0.01 }}, backward = {{ model = "bernoulli", probability = 0.01 }} }} }}]
measure = [{measure}]
[[flow]]
name = "f"
from = "a"
to = "b"
transport = {{ protocol = "sctp"{transport} }}
workload = {{ kind = "bulk", total = "300 KiB", message = "700 B" }}
"#
    )
}

/// Error of a spec that cannot be run.
fn refused(text: &str) -> String {
    match Plan::new(PlanRequest::new("third-party.toml", text)) {
        Ok(plan) => panic!("{} units", PlannedRun::all(&plan).len()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn settings_that_a_stack_lacks_are_refused() {
    for (transport, words) in [
        (
            r#", stack = "dcsctq""#,
            &["stack", "\"dcsctq\"", "did you mean `dcsctp`"][..],
        ),
        (
            r#", stack = "dcsctp", profile = "rfc4960""#,
            &["profile", "dcsctp has no profiles"],
        ),
        (
            r#", stack = "rtc-sctp", rack_tlp = true"#,
            &["rack_tlp", "unknown key"],
        ),
        (
            r#", stack = "sctp-proto", mtu = "20 kB""#,
            &["mtu", "576 B to 8 KiB"],
        ),
    ] {
        let said = refused(&spec(transport, ""));
        for word in words {
            assert!(said.contains(word), "{transport}: {word}: {said}");
        }
    }
    let tcp = spec(r#", stack = "dcsctp""#, "").replace("\"sctp\"", "\"tcp\"");
    let said = refused(&tcp);
    assert!(said.contains("only sctp has other stacks"), "{said}");
}

#[cfg(not(feature = "dcsctp"))]
#[test]
fn a_stack_that_was_not_compiled_in_names_its_feature() {
    let said = refused(&spec(r#", stack = "dcsctp""#, ""));
    assert!(said.contains("feature `dcsctp`"), "{said}");
}

#[cfg(all(feature = "dcsctp", feature = "rtc-sctp", feature = "sctp-proto"))]
mod here {
    use anabranch_engine::sink::NullSink;
    use anabranch_engine::world;
    use anabranch_scenario::records::RunRecord;

    use super::*;

    const STACKS: [&str; 3] = ["dcsctp", "rtc-sctp", "sctp-proto"];
    const MEASURES: &str = r#"{ metric = "goodput", flow = "f" }, { metric = "retransmissions", flow = "f" }, { metric = "segments_sent", flow = "f" }, { metric = "duplicates_received", flow = "f" }, { metric = "lost_messages", flow = "f" }, { metric = "duplicate_messages", flow = "f" }, { metric = "mean_one_way_delay", flow = "f" }"#;

    fn transport(stack: &str) -> String {
        format!(r#", stack = "{stack}", streams = 3, receive_buffer = "64 KiB""#)
    }

    fn run(text: &str, seed: u64) -> RunRecord {
        let plan = Plan::new(PlanRequest::new("third-party.toml", text));
        let plan = plan.unwrap_or_else(|error| panic!("{error}"));
        let record =
            world::run(&PlannedRun::all(&plan)[0], seed, &mut NullSink, &[]).expect("a run");
        assert!(record.failures.is_empty(), "{:?}", record.failures);
        record
    }

    fn value(record: &RunRecord, metric: &str) -> f64 {
        let value = record.value("f", metric);
        value.unwrap_or_else(|| panic!("{metric}: {:?}", record.metrics))
    }

    #[test]
    fn everything_arrives_once_over_a_lossy_link() {
        for stack in STACKS {
            let record = run(&spec(&transport(stack), MEASURES), 1);
            let sum = 8.0 * 300.0 * 1024.0 / 20.0;
            assert!((value(&record, "goodput") - sum).abs() < 1.0, "{stack}");
            assert_eq!(value(&record, "lost_messages"), 0.0, "{stack}");
            assert_eq!(value(&record, "duplicate_messages"), 0.0, "{stack}");
            let (sent, again) = (
                value(&record, "segments_sent"),
                value(&record, "retransmissions"),
            );
            assert!(again > 0.0, "{stack}: something was lost");
            // Each of the 439 messages fits one chunk, but dcsctp splits some messages to fill
            // packets.
            let chunks = sent - again;
            match stack {
                "dcsctp" => assert!((440.0..878.0).contains(&chunks), "{chunks}"),
                _ => assert_eq!(chunks, 439.0, "{stack}"),
            }
            assert!(value(&record, "duplicates_received") <= again, "{stack}");
            assert!(value(&record, "mean_one_way_delay") >= 0.02, "{stack}");
        }
    }

    #[test]
    fn a_run_is_the_same_twice_and_another_seed_is_another() {
        for stack in STACKS {
            let text = spec(&transport(stack), MEASURES);
            let of = |seed| {
                let record = run(&text, seed);
                let metrics = format!("{:?}", record.metrics);
                (record.events, record.packet_hops, metrics)
            };
            assert_eq!(of(1), of(1), "{stack}");
            assert_ne!(of(1), of(2), "{stack}");
        }
    }

    #[test]
    fn metrics_that_a_stack_does_not_report_are_refused() {
        for (stack, metric, probe) in [
            ("dcsctp", "timeouts", "timeout"),
            ("sctp-proto", "mean_cwnd", "cwnd"),
            ("rtc-sctp", "ecn_reductions", "ecn_response"),
        ] {
            let measure = format!(r#"{{ metric = "{metric}", flow = "f" }}"#);
            let said = refused(&spec(&transport(stack), &measure));
            assert!(said.contains(stack), "{said}");
            assert!(said.contains(&format!("`{probe}`")), "{said}");
        }
    }

    /// A shortened version of the example `stacks.toml`, which compares the stacks: each sender
    /// should deliver data over each path, and unnecessary retransmissions should not exceed all
    /// retransmissions.
    #[test]
    fn each_stack_serves_each_path_of_the_study() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/stacks.toml");
        let text = std::fs::read_to_string(path).expect("an example");
        let plan = Plan::new(PlanRequest::new(path, text).with(|it| {
            it.overrides = ["begin='3 s'", "end='10 s'"].map(str::to_owned).to_vec();
            it.replications = Some(1);
        }));
        let plan = plan.unwrap_or_else(|error| panic!("{error}"));
        let units = PlannedRun::all(&plan);
        assert_eq!(units.len(), 4 * 5, "four paths, five senders");
        for unit in units {
            let record = world::run(&unit, 1, &mut NullSink, &[]).expect("a run");
            assert!(record.failures.is_empty(), "{:?}", record.failures);
            let value = |metric| {
                let value = record.value("download", metric);
                value.unwrap_or_else(|| panic!("{metric}: {:?}", record.metrics))
            };
            let goodput = value("goodput");
            // The slowest path has 10 Mbit/s, over which a window that never grows carries 10 kB in
            // 540 ms. The fastest path has 50 Mbit/s.
            assert!(
                (1e5..50e6).contains(&goodput),
                "{:?}: {goodput}",
                record.point
            );
            let (again, twice) = (value("retransmissions"), value("duplicates_received"));
            assert!(twice <= again, "{:?}: {twice} {again}", record.point);
        }
    }
}
