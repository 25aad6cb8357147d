//! Tests of a proxy that splits TCP connections: its effect on a transfer, and its keys in a spec.

use anabranch_engine::plan::{Plan, PlanRequest, PlannedRun};
use anabranch_engine::sink::NullSink;
use anabranch_engine::world;
use anabranch_scenario::records::RunRecord;

/// A server, a gateway at a distance of one millisecond, and a browser behind a satellite with a
/// one-way delay of 280 ms. `gateway` contains further keys of the gateway's table. The server
/// sends 40 segments over an established connection; they fit into the 65,535 B that a SYN-ACK can
/// advertise (RFC 7323 §2.2).
fn spec(gateway: &str, loss: f64) -> String {
    format!(
        r#"
anabranch = 1
name = "proxy"
world = {{ duration = "100 s" }}
[[node]]
name = "server"
[[node]]
name = "gateway"
{gateway}
[[node]]
name = "browser"
[[link]]
name = "wire"
between = ["server", "gateway"]
rate = "1 Gbit/s"
delay = "1 ms"
[[link]]
name = "satellite"
between = ["gateway", "browser"]
rate = "100 Mbit/s"
delay = "280 ms"
loss = {{ forward = {{ model = "bernoulli", probability = {loss}, position = "after-queue" }} }}
[[flow]]
name = "page"
from = "server"
to = "browser"
transport = {{ protocol = "tcp", initial_window = "10 segments", receive_buffer = "1 MiB", window_scale = true, sack = true }}
workload = {{ kind = "transfers", arrivals = "fixed", every = "1 s", count = 1, size = {{ kind = "fixed", bytes = "58400 B" }} }}
[[measure]]
metric = "flow_completion_time"
flow = "page"
statistic = ["most"]
[[measure]]
metric = "transfers_incomplete"
flow = "page"
"#
    )
}

fn run(text: &str) -> RunRecord {
    let plan =
        Plan::new(PlanRequest::new("proxy.toml", text)).unwrap_or_else(|error| panic!("{error}"));
    world::run(&PlannedRun::all(&plan)[0], 1, &mut NullSink, &[]).expect("a run")
}

fn time(record: &RunRecord) -> f64 {
    let value = record.value("page", "flow_completion_time_most");
    value.unwrap_or_else(|| panic!("{:?}", record.metrics))
}

/// Towards the satellite the proxy sends 100 segments at once.
const PROXY: &str = r#"proxy = { kind = "split-tcp", downstream = { protocol = "tcp", receive_buffer = "1 MiB", window_scale = true }, upstream = { protocol = "tcp", initial_window = "100 segments", receive_buffer = "1 MiB", window_scale = true } }"#;

#[test]
fn a_window_of_its_own_saves_the_rounds_of_slow_start() {
    // Without a proxy, the 40 segments are sent in three windows: 10, at most 20, and the remaining
    // segments. The last ones start after two round trips of 562 ms and take 281 ms.
    let without = time(&run(&spec("", 0.0)));
    assert!(without > 2.0 * 0.562 + 0.281, "{without}");
    // With a proxy, the gateway forwards each segment when it arrives. Three windows reach the
    // gateway within two round trips of 2 ms plus 1 ms, and each of the last ten segments takes 120
    // us on the satellite link. The transfer takes at least the 4.8 ms of its 40 segments plus a
    // delay of 281 ms.
    let with = time(&run(&spec(PROXY, 0.0)));
    let expected = 0.280 + 0.005 + 10.0 * 1500.0 * 8.0 / 1e8;
    assert!(
        with > 0.281 + 0.0048 && with < expected + 0.002,
        "{with} against {expected}"
    );
}

#[test]
fn losses_behind_a_proxy_are_repaired_by_it() {
    for seed_of_losses in [0.01, 0.05, 0.2] {
        let record = run(&spec(PROXY, seed_of_losses));
        assert!(record.failures.is_empty(), "{:?}", record.failures);
        assert_eq!(record.value("page", "transfers_incomplete"), Some(0.0));
        // Two runs with the same seed should agree in every event.
        let again = run(&spec(PROXY, seed_of_losses));
        assert_eq!((time(&again), again.events), (time(&record), record.events));
    }
}

#[test]
fn a_proxy_with_default_settings_carries_all() {
    let record = run(&spec(r#"proxy = { kind = "split-tcp" }"#, 0.01));
    assert_eq!(record.value("page", "transfers_incomplete"), Some(0.0));
}

#[test]
fn a_proxy_that_makes_no_sense_is_refused() {
    let refused = |proxy: &str| {
        let text = spec(&format!("proxy = {{ {proxy} }}"), 0.0);
        let plan = Plan::new(PlanRequest::new("proxy.toml", &text));
        plan.expect_err(proxy).to_string()
    };
    let cases = [
        (r#"kind = "split-tpc""#, "did you mean `split-tcp`?"),
        (r#"kind = "split-tcp", buffer = "0 B""#, "found no buffer"),
        (
            r#"kind = "split-tcp", upstream = { protocol = "sctp" }"#,
            "a proxy that splits TCP speaks tcp",
        ),
        (
            r#"kind = "split-tcp", downstream = { protocol = "tcp", congestion = "cubik" }"#,
            "did you mean `cubic`?",
        ),
        (r#"kind = "split-tcp", most = 3"#, "most"),
    ];
    for (proxy, expected) in cases {
        let message = refused(proxy);
        assert!(message.contains(expected), "{proxy}: {message}");
    }
}
