//! Tests of QUIC in a world: it should fill a link, its streams should not wait for each other, and
//! runs should be reproducible.
#![cfg(feature = "quic")]

use anabranch_engine::plan::{Plan, PlanRequest, PlannedRun};
use anabranch_engine::sink::NullSink;
use anabranch_engine::world;
use anabranch_scenario::records::RunRecord;

fn spec(transport: &str, workload: &str, link: &str) -> String {
    let measures = match workload == BULK {
        true => "",
        false => {
            r#", { metric = "transfers_complete", flow = "f" }, { metric = "flow_completion_time", flow = "f", statistic = ["most"] }"#
        }
    };
    format!(
        r#"
anabranch = 1
name = "quic"
world = {{ duration = "20 s" }}
node = [{{ name = "a" }}, {{ name = "b" }}]
link = [{{ name = "wire", between = ["a", "b"], {link} }}]
measure = [{{ metric = "goodput", flow = "f", window = ["5 s", "20 s"] }}, {{ metric = "retransmissions", flow = "f" }}{measures}]
[[flow]]
name = "f"
from = "a"
to = "b"
transport = {{ protocol = "quic"{transport} }}
workload = {{ {workload} }}
"#
    )
}

fn plan(text: &str) -> Plan {
    Plan::new(PlanRequest::new("quic.toml", text)).unwrap_or_else(|error| panic!("{error}"))
}

fn run(text: &str) -> RunRecord {
    let plan = plan(text);
    let record = world::run(&PlannedRun::all(&plan)[0], 1, &mut NullSink, &[]).expect("a run");
    assert!(record.failures.is_empty(), "{:?}", record.failures);
    record
}

fn value(record: &RunRecord, metric: &str) -> f64 {
    let value = record.value("f", metric);
    value.unwrap_or_else(|| panic!("{metric}: {:?}", record.metrics))
}

const CLEAN: &str = r#"rate = "10 Mbit/s", delay = "20 ms", queue = "40 packets""#;
const LOSSY: &str = r#"rate = "10 Mbit/s", delay = "20 ms", queue = "40 packets", loss = { forward = { model = "bernoulli", probability = 0.02 } }"#;
const BULK: &str = r#"kind = "bulk""#;

#[test]
fn bulk_fills_a_link_but_for_its_headers() {
    for transport in ["", r#", congestion = "newreno""#] {
        let record = run(&spec(transport, BULK, CLEAN));
        let goodput = value(&record, "goodput");
        // Of 1500 bytes, 20 are the IP header, 8 the UDP header, 16 the AEAD tag, and 13 to 25
        // other overhead of QUIC. After the window is halved, the link is idle at times.
        let most = 1e7 * (1500.0 - 20.0 - 8.0 - 16.0 - 13.0) / 1500.0;
        assert!(
            (0.9 * most..=most).contains(&goodput),
            "{transport}: {goodput} of {most}"
        );
        assert!(value(&record, "retransmissions") > 0.0);
    }
}

#[test]
fn metrics_that_quinn_does_not_report_are_refused() {
    let right = spec("", BULK, CLEAN);
    for (metric, probe) in [("timeouts", "timeout"), ("segments_sent", "sent")] {
        let wrong = right.replace(
            r#"metric = "retransmissions""#,
            &format!(r#"metric = "{metric}""#),
        );
        let error = Plan::new(PlanRequest::new("quic.toml", &wrong)).expect_err("a refusal");
        let said = error.to_string();
        let expected = format!("QUIC does not tell `{probe}`; what can be seen of it is `cwnd`");
        assert!(said.contains(&expected), "{said}");
    }
    let wrong = right.replace(
        r#"metric = "retransmissions""#,
        r#"metric = "packets", statistic = "mean-delay""#,
    );
    let error = Plan::new(PlanRequest::new("quic.toml", &wrong)).expect_err("a refusal");
    let said = error.to_string();
    assert!(
        said.contains("QUIC does not show which of its packets carry data"),
        "{said}"
    );
}

#[test]
fn a_run_is_the_same_twice_and_another_seed_is_another() {
    let text = spec(", streams = 4", BULK, LOSSY);
    let plan = plan(&text);
    let of = |seed| {
        let record =
            world::run(&PlannedRun::all(&plan)[0], seed, &mut NullSink, &[]).expect("a run");
        (
            record.events,
            record.packet_hops,
            format!("{:?}", record.metrics),
        )
    };
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
}

#[test]
fn streams_do_not_wait_for_each_other() {
    let page = r#"kind = "transfers", arrivals = "fixed", every = "1 us", count = 30, size = { kind = "fixed", bytes = "30000 B" }"#;
    let time = |streams: u16| {
        let record = run(&spec(&format!(", streams = {streams}"), page, LOSSY));
        assert_eq!(value(&record, "transfers_complete"), 30.0);
        value(&record, "flow_completion_time_most")
    };
    // 900 kB at 10 Mbit/s take 0.72 s, and the handshake takes 40 ms.
    for streams in [1, 30] {
        let time = time(streams);
        assert!((0.76..6.0).contains(&time), "{streams}: {time}");
    }
}

#[test]
fn every_byte_of_a_transfer_arrives_over_ipv6_with_checksums_and_damage() {
    let page = r#"kind = "transfers", arrivals = "fixed", every = "1 s", count = 3, size = { kind = "fixed", bytes = "100000 B" }"#;
    let link = r#"rate = "10 Mbit/s", delay = "20 ms", impairment = { corrupt = 0.02, duplicate = 0.02, reorder = 0.02 }"#;
    let text = spec("", page, link).replace("to = \"b\"", "to = \"b\"\nip = \"ipv6\"");
    let record = run(&text);
    assert_eq!(value(&record, "transfers_complete"), 3.0);
}
