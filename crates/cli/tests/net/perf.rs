//! Tests of the output of `perf`.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::common::{Beside, SMALL, json, run, server, signal, text};

#[test]
fn perf_counts_what_the_sink_got() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    let sink = server(
        here,
        "sink",
        &["--trace", "traced", "--capture", "sink.pcapng"],
    );
    let port = sink.port("UDP port");
    let arguments = [
        "perf",
        "127.0.0.1",
        "--peer-udp-port",
        &port,
        "-n",
        "3 MB",
        "-l",
        "5000 B",
    ];
    let options = [
        "--json",
        "--streams",
        "4",
        "--unordered",
        "--profile",
        "rfc4960",
        "--trace",
        "sent",
    ];
    let perf = run(here, &[&arguments[..], &options].concat());
    let document = json(&perf);
    assert_eq!(document["end"]["sum_sent"]["bytes"], 3_000_000);
    assert_eq!(document["end"]["sum_sent"]["messages"], 600);
    // The receiver counts by its own clock, and has no congestion window to report.
    let received = &document["end"]["sum_received"];
    assert_eq!(received["bytes"], 3_000_000);
    assert_eq!(received["messages"], 600);
    assert_eq!(received["snd_cwnd"], Value::Null);
    assert!(received["seconds"].as_f64() > Some(0.0));
    assert_eq!(document["error"], Value::Null);
    assert_eq!(document["start"]["streams"], 4);
    let of_intervals = document["intervals"].as_array().expect("a list").iter();
    let sum: u64 = of_intervals
        .filter_map(|it| it["sum"]["bytes"].as_u64())
        .sum();
    assert_eq!(sum, 3_000_000, "the intervals are the whole");
    let (status, said) = sink.end();
    assert_eq!(status, 0);
    assert!(
        said.contains("600 messages") && said.contains("closed gracefully"),
        "{said}"
    );
    // The trace is a results directory.
    let shown = run(here, &["show", "traced"]);
    let shown = text(&shown.stdout);
    assert!(
        shown.contains("goodput") && shown.contains("Receive window advertised"),
        "{shown}"
    );
    assert!(here.join("traced/figures/a_rwnd.svg").exists());
    // A sender does not know when its data was delivered, and the sink's final report is not data.
    // The figures extend to the end of the run, even if a window was constant long before.
    let shown = run(here, &["show", "sent"]);
    let shown = text(&shown.stdout);
    assert!(
        shown.contains("Congestion window") && !shown.contains("goodput"),
        "{shown}"
    );
    let spec = fs::read_to_string(here.join("sent/spec.toml")).expect("a spec");
    assert_eq!(
        spec.matches("\nwindow = [\"0 s\", ").count(),
        spec.matches("[[figure]]").count(),
        "{spec}"
    );
    let capture = fs::metadata(here.join("sink.pcapng")).expect("a capture");
    assert!(capture.len() > 3_000_000, "{} bytes", capture.len());
    let tshark = Command::new("tshark")
        .current_dir(here)
        .args(["-r", "sink.pcapng", "-Y", "sctp.chunk_type == 14"])
        .output()
        .expect("tshark is installed by scripts/setup");
    assert!(
        text(&tshark.stdout).contains("SHUTDOWN_COMPLETE"),
        "{}",
        text(&tshark.stderr)
    );
}

#[test]
fn perf_the_other_way_and_for_a_time() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    let source = server(here, "source", &[]);
    let port = source.port("UDP port");
    let perf = [
        "perf",
        "127.0.0.1",
        "--peer-udp-port",
        &port,
        "-R",
        "--json",
    ];
    let document = json(&run(
        here,
        &[&perf[..], &["-n", "1 MB", "-l", "1000 B"]].concat(),
    ));
    assert_eq!(document["end"]["sum_received"]["bytes"], 1_000_000);
    assert_eq!(document["end"]["sum_received"]["messages"], 1_000);
    // With `-R` the server sends, so the statistics and the window are those that it reports.
    let sent = &document["end"]["sum_sent"];
    assert_eq!(
        (&sent["bytes"], &sent["messages"]),
        (&1_000_000.into(), &1_000.into())
    );
    assert!(sent["snd_cwnd"].as_u64().is_some_and(|cwnd| cwnd > 0));
    assert_eq!(document["intervals"][0]["sum"]["snd_cwnd"], Value::Null);
    assert_eq!(source.end().0, 0);

    let sink = server(here, "sink", &SMALL);
    let port = sink.port("UDP port");
    let perf = ["perf", "127.0.0.1", "--peer-udp-port", &port, "-t", "0.5"];
    let output = run(here, &[&perf[..], &["-i", "100 ms"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    assert!(
        said.contains("Interval") && said.contains("acknowledged"),
        "{said}"
    );
    // Each interval starts at the end of the previous one. Their number depends on the machine.
    let between: Vec<&str> = said
        .lines()
        // The line with the receiver's statistics is skipped, because its interval is measured by
        // the receiver's clock.
        .filter(|line| !line.ends_with("received"))
        .filter_map(|line| line.split_whitespace().next()?.split_once('-'))
        .filter(|(from, to)| from.parse::<f64>().is_ok() && to.parse::<f64>().is_ok())
        .flat_map(|(from, to)| [from, to])
        .collect();
    let [inner @ .., begin, end] = &between[..] else {
        panic!("no interval:\n{said}");
    };
    assert_eq!((*begin, inner.first()), ("0.00", Some(begin)));
    // The last interval may end before the summary, because a busy machine reads the clock late.
    let last = inner.last().and_then(|it| it.parse::<f64>().ok());
    let whole = end.parse::<f64>().ok();
    assert!(last.is_some() && last <= whole, "{said}");
    assert!(
        inner[1..inner.len() - 1].chunks(2).all(|it| it[0] == it[1]),
        "{said}"
    );
    assert!(end.parse::<f64>().is_ok_and(|end| end >= 0.5), "{said}");
}

/// Conventions of iperf3: sizes without a unit or with K, several associations, both directions,
/// and a summary only.
#[test]
fn perf_has_the_habits_of_iperf3() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    let arguments = ["-p", "7001", "-p", "7002", "--udp-port", "0"];
    let sink = Beside::start(here, &[&["serve", "sink"][..], &arguments].concat());
    assert!(
        sink.first.contains("SCTP ports 7001, 7002"),
        "{}",
        sink.first
    );
    let port = sink.port("UDP port");
    let perf = [
        "perf",
        "127.0.0.1",
        "--peer-udp-port",
        &port,
        "-J",
        "-i",
        "0",
    ];
    for more in [
        &["-p", "7001", "-P", "3", "-n", "1M", "-l", "1024"][..],
        &["-p", "7002", "-P", "3", "-n", "1M", "-l", "1k", "-R"],
    ] {
        let document = json(&run(here, &[&perf[..], more].concat()));
        let sum = if more.contains(&"-R") {
            "sum_received"
        } else {
            "sum_sent"
        };
        let end = &document["end"];
        assert_eq!(end[sum]["bytes"], 1 << 20, "{document}");
        assert_eq!(document["start"]["test_start"]["blksize"], 1_024);
        assert_eq!(end["streams"].as_array().map(Vec::len), Some(3));
        assert_eq!(document["intervals"].as_array().map(Vec::len), Some(1));
    }
    // The text output has a line for each association, and one for the sum.
    let said = run(
        here,
        &[
            "perf",
            "127.0.0.1:7002",
            "--peer-udp-port",
            &port,
            "-P",
            "2",
            "-n",
            "100K",
        ],
    );
    let said = text(&said.stdout);
    for word in ["[ ID]", "[  1]", "[  2]", "[SUM]", "100.00 KiB"] {
        assert!(said.contains(word), "{said}");
    }
    // Connecting to an unused SCTP port is refused immediately.
    let refused = run(here, &["perf", "127.0.0.1:7003", "--peer-udp-port", &port]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        text(&refused.stderr).contains("nobody accepts associations at SCTP port 7003"),
        "{}",
        text(&refused.stderr)
    );
}

/// A file that accepts no data has the same effect as a full disk.
#[test]
fn a_capture_on_a_full_disk_fails_after_the_figures() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    let sink = server(here, "sink", &[]);
    let port = sink.port("UDP port");
    let arguments = ["perf", "127.0.0.1", "--peer-udp-port", &port, "-n", "1M"];
    let output = run(
        here,
        &[&arguments[..], &["--capture", "/dev/full"]].concat(),
    );
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stdout).contains("acknowledged"),
        "{}",
        text(&output.stdout)
    );
    let said = text(&output.stderr);
    assert!(
        said.contains("/dev/full") && said.contains("No space left"),
        "{said}"
    );
    assert_eq!(sink.end().0, 0);
}

#[test]
fn both_directions_at_once_and_at_a_rate() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    let mut sink = Beside::start(here, &["serve", "sink", "--udp-port", "0", "--json"]);
    let port = sink.port("\"udp_port\":");
    let perf = ["perf", "127.0.0.1", "--peer-udp-port", &port];
    let options = [
        "--bidir", "-P", "2", "-n", "100000", "-l", "1000", "-b", "1M", "--json",
    ];
    let document = json(&run(here, &[&perf[..], &options].concat()));
    let end = &document["end"];
    for sum in [
        "sum_sent",
        "sum_received",
        "sum_sent_bidir_reverse",
        "sum_received_bidir_reverse",
    ] {
        assert_eq!(end[sum]["bytes"], 100_000, "{sum}: {end}");
        assert_eq!(end[sum]["messages"], 100, "{sum}");
    }
    let streams = end["streams"].as_array().expect("a list");
    let senders: Vec<&Value> = streams.iter().map(|it| &it["sender"]).collect();
    assert_eq!(senders, [true, true, false, false]);
    // At 1 Mbit/s the last of 50 messages may be sent after 49 x 8 ms. There is no upper limit,
    // because the machine may be busy.
    let seconds = end["sum_sent"]["seconds"].as_f64().expect("a number");
    assert!(seconds >= 0.39, "{seconds}");
    let path = &streams[0]["paths"][0];
    assert_eq!(
        (&path["address"], &path["state"]),
        (&"127.0.0.1".into(), &"active".into())
    );
    assert!(
        path["mtu"].as_u64().is_some_and(|mtu| mtu >= 1_200),
        "{path}"
    );
    assert!(
        end["cpu_utilization_percent"]["host_total"]
            .as_f64()
            .is_some_and(|it| it > 0.0)
    );
    assert_eq!(document["start"]["test_start"]["target_bitrate"], 1_000_000);

    // For each association the server prints one object when it is established, and one for its
    // outcome.
    let events: Vec<Value> = (0..8)
        .map(|_| serde_json::from_str(&sink.line()).expect("an object"))
        .collect();
    let up = events.iter().filter(|it| it["event"] == "up").count();
    let ends = events.iter().filter(|it| it["event"] == "end");
    let whole = ends.filter(|it| it["bytes"] == 50_000 && it["error"] == Value::Null);
    assert_eq!([up, whole.count()], [4, 4], "{events:?}");
    signal(&sink.child, "TERM");
    assert_eq!(sink.end().0, 0);

    for (wrong, hint) in [
        (&["-b", "0"][..], "must be above 0"),
        (&["-b", "2 parsecs"], "allowed units: bit/s"),
        (&["-R", "--bidir"], "cannot be used with"),
    ] {
        let output = run(here, &[&perf[..], wrong].concat());
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        assert!(
            text(&output.stderr).contains(hint),
            "{}",
            text(&output.stderr)
        );
    }
}

/// If a sink is requested to send (`-R`), its trace contains its own congestion window, and the
/// client's control messages do not count as received data.
#[test]
fn a_sink_that_is_asked_to_send_traces_what_it_sends() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    let sink = server(here, "sink", &["--trace", "traced"]);
    let port = sink.port("UDP port");
    let perf = ["perf", "127.0.0.1", "--peer-udp-port", &port];
    let perf = run(
        here,
        &[&perf[..], &["-R", "-n", "300 kB", "-i", "0"]].concat(),
    );
    assert!(perf.status.success(), "{}", text(&perf.stderr));
    let (status, said) = sink.end();
    assert_eq!(status, 0, "{said}");
    let shown = run(here, &["show", "traced"]);
    let shown = text(&shown.stdout);
    assert!(
        shown.contains("Congestion window") && !shown.contains("goodput"),
        "{shown}"
    );
}
