//! How `perf` ends: after its time, by an interrupt, or because the peer does not answer.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::process::Stdio;

use serde_json::Value;

use crate::common::{Beside, SMALL, anabranch, json, run, server, signal, text};

/// A path so slow that sending a full send buffer takes minutes.
const SLOW: &str = r#"
anabranch = 1
[[node]]
name = "near"
[[node]]
name = "far"
[[link]]
name = "path"
between = ["near", "far"]
rate = "200 kbit/s"
delay = "20 ms"
queue = "10 packets"
"#;

/// `perf` fills its send buffer of 4 MiB, which the link of 200 kbit/s would need 168 s to carry.
/// Messages that are unsent at the end of the time are cancelled.
#[test]
fn messages_unsent_at_the_end_of_the_time_are_cancelled() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    fs::write(here.join("slow.toml"), SLOW).expect("a file");
    let sink = server(here, "sink", &[]);
    let to = format!("127.0.0.1:{}", sink.port("UDP port"));
    let emulate = ["emulate", "slow.toml", "--listen", "127.0.0.1:0"];
    let emulator = Beside::start(here, &[&emulate[..], &["--to", &to]].concat());
    let port = emulator.port("from 127.0.0.1:");
    let perf = ["perf", "127.0.0.1", "--peer-udp-port", &port, "-J"];
    let document = json(&run(here, &[&perf[..], &["-t", "0.5"]].concat()));
    let acknowledged = document["end"]["sum_sent"]["bytes"].as_u64();
    assert!(
        acknowledged.is_some_and(|bytes| bytes < 1 << 20),
        "{document}"
    );
}

#[test]
fn one_signal_ends_a_measurement_with_its_report() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    for reverse in [false, true] {
        let sink = server(here, "sink", &SMALL);
        let port = sink.port("UDP port");
        let perf = ["perf", "127.0.0.1", "--peer-udp-port", &port, "-t", "3600"];
        let more = ["-i", "0.1", if reverse { "-R" } else { "-u" }];
        let mut perf = anabranch(here, &[&perf[..], &more, &SMALL].concat())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let mut output = BufReader::new(perf.stdout.take().expect("piped"));
        let mut line = String::new();
        // Reads the heading and one interval.
        for _ in 0..3 {
            output.read_line(&mut line).expect("a line");
        }
        signal(&perf, "TERM");
        let mut rest = String::new();
        output.read_to_string(&mut rest).expect("text");
        assert_eq!(perf.wait().expect("it ends").code(), Some(0), "{rest}");
        let words = if reverse {
            ["received", "sent"]
        } else {
            ["acknowledged", "received"]
        };
        for word in words {
            let told = rest.lines().any(|line| line.trim_end().ends_with(word));
            assert!(told, "no line of what was {word} in\n{rest}");
        }
        assert_eq!(sink.end().0, 0);
    }
}

/// The UDP port of a killed server is closed, which Linux reports by ICMP. A stopped server is
/// silent.
#[test]
fn a_server_that_is_gone_ends_a_measurement_with_its_report() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    let silent = ("0.5", "nothing arrived for 0.5 s (--idle-timeout)");
    let closed = (
        // A long idle timeout, because data may be retransmitted for some time before the port is
        // found closed.
        "60",
        "the association ended: the peer's address or UDP port takes no SCTP (ICMP: unreachable)",
    );
    let killed = if cfg!(target_os = "linux") {
        closed
    } else {
        silent
    };
    for (name, (idle, reason)) in [("KILL", killed), ("STOP", silent)] {
        let mut sink = server(here, "sink", &[]);
        let port = sink.port("UDP port");
        let perf = ["perf", "127.0.0.1", "--peer-udp-port", &port, "-J"];
        let more = ["-n", "1T", "-l", "64K", "--idle-timeout", idle];
        let perf = anabranch(here, &[&perf[..], &more].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let up = sink.line();
        assert!(up.contains("association up"), "{up}");
        signal(&sink.child, name);
        let output = perf.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(1), "{name}");
        let said = text(&output.stderr);
        assert_eq!(said.trim_end(), format!("error: {reason}"), "{name}");
        let document: Value = serde_json::from_slice(&output.stdout).expect("a document");
        assert_eq!(document["end"]["sum_received"], Value::Null, "{document}");
        let sent = &document["end"]["sum_sent"];
        let [bytes, messages] = ["bytes", "messages"].map(|key| sent[key].as_u64());
        assert_eq!(messages, bytes.map(|bytes| bytes / 65_536), "{document}");
        assert_eq!(document["error"], reason, "{document}");
    }
}

/// Linux reports a closed UDP port by ICMP. The attempt is repeated for a short time, because a
/// server may be about to start.
#[cfg(target_os = "linux")]
#[test]
fn an_attempt_at_a_closed_port_waits_for_a_server_to_start() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    let free = || {
        let bound = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        bound.local_addr().expect("bound").port().to_string()
    };
    let port = free();
    for command in ["perf", "cat"] {
        let output = run(here, &[command, "127.0.0.1", "--peer-udp-port", &port]);
        assert_eq!(output.status.code(), Some(1));
        let said = text(&output.stderr);
        let question =
            "(ICMP: unreachable); is a server there, at the UDP port of --peer-udp-port?";
        assert!(said.trim_end().ends_with(question), "{said}");
    }
    let port = free();
    let perf = ["perf", "127.0.0.1", "--peer-udp-port", &port, "-n", "1K"];
    let mut early = anabranch(here, &perf)
        .stdout(Stdio::null())
        .spawn()
        .expect("the command starts");
    std::thread::sleep(std::time::Duration::from_millis(300));
    let sink = Beside::start(here, &["serve", "sink", "--once", "--udp-port", &port]);
    assert!(early.wait().expect("it ends").success());
    assert_eq!(sink.end().0, 0);
}

#[test]
fn an_attempt_ends_when_the_command_line_says() {
    let directory = tempfile::tempdir().expect("a directory");
    let silent = UdpSocket::bind("127.0.0.1:0").expect("loopback");
    let port = silent.local_addr().expect("bound").port().to_string();
    for command in ["perf", "cat"] {
        let call = [command, "127.0.0.1", "--peer-udp-port", &port];
        let more = ["--connect-timeout", "50 ms"];
        let output = run(directory.path(), &[&call[..], &more].concat());
        assert_eq!(output.status.code(), Some(1));
        let said = text(&output.stderr);
        assert!(said.contains("the peer does not answer"), "{said}");
    }
}

/// Samples are kept up to the end of the process, however it ends.
#[test]
fn a_trace_of_a_process_that_was_killed_is_in_samples_csv() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    let sink = Beside::start(
        here,
        &["serve", "sink", "--udp-port", "0", "--trace", "traced"],
    );
    let port = sink.port("UDP port");
    let perf = ["perf", "127.0.0.1", "--peer-udp-port", &port, "-n", "1M"];
    let perf = run(here, &[&perf[..], &["--trace", "ended"]].concat());
    assert!(perf.status.success(), "{}", text(&perf.stderr));
    assert!(
        !here.join("ended/samples.csv").exists() && here.join("ended/report.html").exists(),
        "it is in the results directory now"
    );
    let samples = || fs::read_to_string(here.join("traced/samples.csv")).expect("samples");
    while samples().lines().count() < 100 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    signal(&sink.child, "KILL");
    let samples = samples();
    let mut lines = samples.lines();
    assert_eq!(lines.next(), Some("seconds,association,probe,value"));
    let line: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let [seconds, "0", probe, value] = line[..] else {
        panic!("{line:?}");
    };
    assert!(seconds.parse::<f64>().is_ok() && value.parse::<f64>().is_ok());
    assert!(!probe.is_empty());
}

/// Any file can serve as the library, because the dynamic linker skips libraries that it cannot
/// load, with a message.
#[test]
fn wrap_passes_the_signal_on_that_it_got() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    fs::write(here.join("none.so"), b"").expect("a file");
    for (name, status) in [("INT", 3), ("TERM", 4)] {
        let script = "trap 'exit 3' INT; trap 'exit 4' TERM; echo up; while :; do sleep 0.05; done";
        let wrap = [
            "wrap",
            "--udp-port",
            "0",
            "--no-seccomp",
            "--",
            // Resets the signals to their default actions, because a shell cannot trap a signal
            // that was ignored when it was started. In a background command of a script they are
            // ignored.
            "env",
            "--default-signal=INT,TERM",
            "sh",
            "-c",
            script,
        ];
        let mut wrap = anabranch(here, &wrap)
            .env("ANABRANCH_PRELOAD", here.join("none.so"))
            .stdout(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let mut output = BufReader::new(wrap.stdout.take().expect("piped"));
        let mut line = String::new();
        output.read_line(&mut line).expect("a line");
        assert_eq!(line, "up\n");
        signal(&wrap, name);
        let ended = wrap.wait().expect("it ends");
        assert_eq!(ended.code(), Some(status), "SIG{name}");
    }
}
