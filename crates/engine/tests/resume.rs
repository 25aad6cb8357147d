//! Tests of Careful Resume (RFC 9959) over a geostationary satellite: a transfer starts from the
//! observations of an earlier one.

use anabranch_engine::plan::{Plan, PlanRequest, PlannedRun};
use anabranch_engine::sink::NullSink;
use anabranch_engine::world;
use anabranch_scenario::records::RunRecord;

/// A transfer of 30 MB at 0 s observes the path, and one of `bytes` bytes starts at 60 s. The path
/// has 10 Mbit/s, an RTT of 600 ms, and a queue of one bandwidth-delay product. From 50 s on the
/// link has the rate `rate_later`.
fn spec(transport: &str, resume: &str, bytes: u64, rate_later: &str) -> String {
    format!(
        r#"
anabranch = 1
name = "resume"
world = {{ duration = "150 s" }}
[[node]]
name = "server"
[[node]]
name = "client"
[[link]]
name = "satellite"
between = ["server", "client"]
rate = {{ forward = {{ steps = [["0 s", "10 Mbit/s"], ["50 s", "{rate_later}"]] }}, backward = "10 Mbit/s" }}
delay = "300 ms"
queue = "500 packets"
[[flow]]
name = "first"
from = "server"
to = "client"
stop = "40 s"
transport = {transport}
{resume}
[flow.workload]
kind = "bulk"
[[flow]]
name = "second"
from = "server"
to = "client"
start = "60 s"
transport = {transport}
{resume}
[flow.workload]
kind = "transfers"
arrivals = "fixed"
every = "1 s"
count = 1
size = {{ kind = "fixed", bytes = "{bytes} B" }}
[[measure]]
metric = "flow_completion_time"
flow = "second"
statistic = ["most"]
[[measure]]
metric = "resume_phases"
flow = "second"
[[measure]]
metric = "probe"
name = "retreats"
flow = "second"
probe = "resume_phase"
statistic = ["most"]
"#
    )
}

fn plan(text: &str) -> Result<Plan, String> {
    Plan::new(PlanRequest::new("resume.toml", text)).map_err(|error| error.to_string())
}

fn run(text: &str) -> RunRecord {
    let plan = plan(text).unwrap_or_else(|error| panic!("{error}"));
    world::run(&PlannedRun::all(&plan)[0], 1, &mut NullSink, &[]).expect("a run")
}

fn seconds(record: &RunRecord) -> f64 {
    let value = record.value("second", "flow_completion_time_most");
    value.unwrap_or_else(|| panic!("{:?}", record.metrics))
}

const TRANSPORTS: [(&str, f64); 5] = [
    (
        r#"{ protocol = "tcp", profile = "linux", congestion = "newreno", receive_buffer = "8 MiB" }"#,
        0.5,
    ),
    (
        r#"{ protocol = "tcp", profile = "linux", congestion = "cubic", receive_buffer = "8 MiB" }"#,
        0.5,
    ),
    (
        r#"{ protocol = "tcp", profile = "linux", congestion = "bbr", receive_buffer = "8 MiB" }"#,
        0.6,
    ),
    (
        r#"{ protocol = "sctp", receive_buffer = "8 MiB", send_buffer = "8 MiB", switches = { initial_window = "10 segments", max_burst = 10 } }"#,
        0.56,
    ),
    (
        r#"{ protocol = "sctp", congestion = "cubic", receive_buffer = "8 MiB", send_buffer = "8 MiB", switches = { initial_window = "10 segments", max_burst = 10 } }"#,
        0.56,
    ),
];

/// The transfer begins 1 s after the start of its flow. Its ten initial packets take 12 ms, and are
/// acknowledged after a round trip of 600 ms. Then the window jumps, and the packets of the jump
/// are paced over a round trip. If the path has only a tenth of its rate and a short queue, packets
/// of the jump are lost, and Safe Retreat lasts until they are recovered.
#[test]
fn each_phase_has_an_entry_and_an_exit() {
    let resume = r#"resume = "server""#;
    let record = run(&spec(TRANSPORTS[1].0, resume, 1_000_000, "10 Mbit/s"));
    let time = |phase: &str, end: &str| record.value("second", &format!("resume_{phase}_{end}"));
    let jump = time("reconnaissance", "exit").expect("a jump");
    assert!((1.6..1.62).contains(&jump), "{:?}", record.metrics);
    assert_eq!(time("unvalidated", "entry"), Some(jump));
    let sent = time("unvalidated", "exit").expect("an end");
    assert!((jump + 0.3..=jump + 0.65).contains(&sent), "{sent}");
    assert_eq!(time("validating", "entry"), Some(sent));
    assert_eq!(time("safe_retreat", "entry"), None);
    let short = spec(TRANSPORTS[1].0, resume, 10_000_000, "1 Mbit/s");
    let record = run(&short.replace("500 packets", "50 packets"));
    let time = |phase: &str, end: &str| record.value("second", &format!("resume_{phase}_{end}"));
    let retreat = time("safe_retreat", "entry").expect("a retreat");
    assert!(retreat > jump, "{retreat}");
    assert!(time("safe_retreat", "exit") > Some(retreat + 0.6));
}

/// With Careful Resume, 1 MB over TCP should take at most half of the time that it takes without.
/// With BBR and with SCTP it should take less than two thirds, because the Startup of BBR is faster
/// and the handshake of SCTP takes one more round trip.
#[test]
fn a_transfer_resumes_in_half_of_the_time() {
    for (transport, share) in TRANSPORTS {
        let [without, with] = ["", r#"resume = "server""#].map(|resume| {
            let record = run(&spec(transport, resume, 1_000_000, "10 Mbit/s"));
            assert!(record.failures.is_empty(), "{:?}", record.failures);
            seconds(&record)
        });
        println!("{transport}: {without:.3} s without, {with:.3} s with");
        assert!(
            with <= share * without,
            "{transport}: {with} against {without}"
        );
    }
}
