//! Real sockets over emulated paths.

use std::fs;

use crate::common::{Beside, json, run, server, text};

#[test]
fn an_emulated_path_stands_between() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    let link = r#"
anabranch = 1
[parameters]
delay = "1 ms"
[[node]]
name = "near"
[[node]]
name = "far"
[[link]]
name = "path"
between = ["near", "far"]
rate = "20 Mbit/s"
delay = "$delay"
queue = "100 packets"
"#;
    fs::write(here.join("link.toml"), link).expect("a file");
    let sink = server(here, "sink", &[]);
    let to = format!("127.0.0.1:{}", sink.port("UDP port"));
    let emulate = [
        "emulate",
        "link.toml",
        "--listen",
        "127.0.0.1:0",
        "--to",
        &to,
    ];
    let emulator = Beside::start(here, &[&emulate[..], &["--set", "delay=25 ms"]].concat());
    let port = emulator.port("from 127.0.0.1:");
    let perf = [
        "perf",
        "127.0.0.1",
        "--peer-udp-port",
        &port,
        "-n",
        "200 kB",
        "--json",
    ];
    let document = json(&run(here, &perf));
    assert_eq!(document["end"]["sum_received"]["bytes"], 200_000);
    let rtt = document["end"]["streams"][0]["rtt"]
        .as_f64()
        .expect("measured");
    assert!(rtt >= 0.050, "two times 25 ms: {rtt}");
    assert_eq!(sink.end().0, 0);
}

/// A short GEO path without loss: slow start into the receive window, limited by the round-trip
/// time. Real sockets should have the same goodput or a little less, because the machine is late at
/// times. More would indicate a wrong delay, rate or packet size.
#[test]
fn a_run_on_real_sockets_does_what_the_simulation_says() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    let spec = r#"
anabranch = 1
name = "short"
[world]
duration = "6 s"
[[node]]
name = "source"
[[node]]
name = "router"
[[node]]
name = "destination"
[[link]]
name = "access"
between = ["source", "router"]
rate = "10 Mbit/s"
delay = "2 ms"
[[link]]
name = "satellite"
between = ["router", "destination"]
rate = "2 Mbit/s"
delay = "250 ms"
queue = "50 packets"
[[flow]]
name = "sctp"
from = "source"
to = "destination"
workload = { kind = "bulk", message = "1432 B" }
[flow.transport]
protocol = "sctp"
mtu = "1480 B"
receive_buffer = "64 KiB"
[[measure]]
metric = "goodput"
flow = "sctp"
[[measure]]
metric = "retransmissions"
flow = "sctp"
[[experiment]]
id = "simulated"
[[experiment]]
id = "real"
[[experiment.record]]
flow = "sctp"
probes = ["cwnd"]
"#;
    fs::write(here.join("short.toml"), spec).expect("a file");
    let output = run(here, &["run", "short.toml", "--live", "real"]);
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains("packets left"),
        "the emulator tells its error: {said}"
    );
    let measures = fs::read_to_string(here.join("short/measures.csv")).expect("measures");
    let value = |experiment: &str, metric: &str| -> f64 {
        let mut rows = measures
            .lines()
            .map(|line| line.split(',').collect::<Vec<_>>());
        let row = rows.find(|row| row[0] == experiment && row[5] == metric);
        row.and_then(|row| row[6].parse().ok()).expect("measured")
    };
    let (simulated, real) = (value("simulated", "goodput"), value("real", "goodput"));
    let share = real / simulated;
    assert!(
        share > 0.0 && share < 1.05,
        "simulated {simulated} bit/s, real {real} bit/s\n{said}"
    );
    assert!(here.join("short/series/real.parquet").exists());

    let refused = run(here, &["run", "short.toml", "--live", "reel"]);
    assert_eq!(refused.status.code(), Some(2));
    let said = text(&refused.stderr);
    assert!(
        said.contains("simulated, real") && said.contains("did you mean `real`"),
        "{said}"
    );
}
