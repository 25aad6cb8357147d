//! Commands on real sockets, on the loopback interface: two processes that talk, what they print, what they leave.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use serde_json::Value;

fn anabranch(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command
        .current_dir(directory)
        .args(arguments)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null());
    command
}

fn run(directory: &Path, arguments: &[&str]) -> Output {
    anabranch(directory, arguments)
        .output()
        .expect("the command starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn number_after(line: &str, word: &str) -> String {
    let rest = line.split(word).nth(1).unwrap_or_default();
    let digits = rest.trim_start().chars().take_while(char::is_ascii_digit);
    let number: String = digits.collect();
    assert!(!number.is_empty(), "no number after {word:?} in {line:?}");
    number
}

/// A command that runs beside the test, and is ended with it.
struct Beside {
    child: Child,
    output: BufReader<ChildStdout>,
    first: String,
}

impl Beside {
    /// Starts it, and waits for its first line.
    fn start(directory: &Path, arguments: &[&str]) -> Self {
        let mut child = anabranch(directory, arguments)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let mut output = BufReader::new(child.stdout.take().expect("piped"));
        let mut first = String::new();
        output.read_line(&mut first).expect("a first line");
        Self {
            child,
            output,
            first,
        }
    }

    /// The number that follows `word` in the first line.
    fn port(&self, word: &str) -> String {
        number_after(&self.first, word)
    }

    /// Waits for its end, and gives what it printed after the first line.
    fn end(mut self) -> (i32, String) {
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).expect("text");
        let status = self.child.wait().expect("it ends");
        (status.code().unwrap_or(-1), rest)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // Ended already, where the test came to its end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn server(directory: &Path, service: &str, more: &[&str]) -> Beside {
    let arguments = ["serve", service, "--once", "--udp-port", "0"];
    let arguments: Vec<&str> = arguments.iter().chain(more).copied().collect();
    Beside::start(directory, &arguments)
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("a JSON document")
}

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
    ];
    let perf = run(here, &[&arguments[..], &options].concat());
    let document = json(&perf);
    assert_eq!(document["end"]["sum_sent"]["bytes"], 3_000_000);
    assert_eq!(document["end"]["sum_sent"]["messages"], 600);
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
    // What it left is a results directory.
    let shown = run(here, &["show", "traced"]);
    let shown = text(&shown.stdout);
    assert!(
        shown.contains("goodput") && shown.contains("Receive window advertised"),
        "{shown}"
    );
    assert!(here.join("traced/figures/a_rwnd.svg").exists());
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
    assert_eq!(source.end().0, 0);

    let sink = server(here, "sink", &[]);
    let port = sink.port("UDP port");
    let perf = ["perf", "127.0.0.1", "--peer-udp-port", &port, "-t", "0.5"];
    let output = run(here, &[&perf[..], &["-i", "100 ms"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    assert!(
        said.contains("Interval") && said.contains("acknowledged"),
        "{said}"
    );
    // What is told ends where the next begins; how many there are is a matter of the machine.
    let between: Vec<&str> = said
        .lines()
        .filter_map(|line| line.split_whitespace().next()?.split_once('-'))
        .filter(|(from, to)| from.parse::<f64>().is_ok() && to.parse::<f64>().is_ok())
        .flat_map(|(from, to)| [from, to])
        .collect();
    let [inner @ .., begin, end] = &between[..] else {
        panic!("no interval:\n{said}");
    };
    assert_eq!(
        (*begin, inner.first(), inner.last()),
        ("0.00", Some(begin), Some(end))
    );
    assert!(
        inner[1..inner.len() - 1].chunks(2).all(|it| it[0] == it[1]),
        "{said}"
    );
    assert!(end.parse::<f64>().is_ok_and(|end| end >= 0.5), "{said}");
}

/// iperf3's habits: sizes without units and by K, several associations, from either side, no lines in between.
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
    // As people read it: each association, and all.
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
    // A port that nobody has says so at once.
    let refused = run(here, &["perf", "127.0.0.1:7003", "--peer-udp-port", &port]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        text(&refused.stderr).contains("nobody accepts associations at SCTP port 7003"),
        "{}",
        text(&refused.stderr)
    );
}

fn signal(child: &Child, name: &str) {
    let command = format!("kill -s {name} {}", child.id());
    let sent = Command::new("sh").args(["-c", &command]).status();
    assert!(sent.expect("sh starts").success());
}

#[test]
fn whoever_is_interrupted_tells_the_other_end() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    let echo = server(here, "echo", &[]);
    let port = echo.port("UDP port");
    let mut cat = anabranch(here, &["cat", "127.0.0.1", "--peer-udp-port", &port])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut input = cat.stdin.take().expect("piped");
    input.write_all(b"x").expect("it reads");
    let output = cat.stdout.as_mut().expect("piped");
    output.read_exact(&mut [0]).expect("it comes back");
    signal(&cat, "INT");
    assert_eq!(cat.wait().expect("it ends").code(), Some(130));
    let (status, said) = echo.end();
    assert_eq!(status, 0);
    assert!(said.contains("aborted by the peer"), "{said}");

    // A server that ends tells its clients.
    let echo = server(here, "echo", &[]);
    let port = echo.port("UDP port");
    let mut cat = anabranch(here, &["cat", "127.0.0.1", "--peer-udp-port", &port])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut input = cat.stdin.take().expect("piped");
    input.write_all(b"x").expect("it reads");
    let output = cat.stdout.as_mut().expect("piped");
    output.read_exact(&mut [0]).expect("it comes back");
    signal(&echo.child, "TERM");
    assert_eq!(echo.end().0, 0);
    let cat = cat.wait_with_output().expect("it ends");
    assert_eq!(cat.status.code(), Some(1));
    assert!(
        text(&cat.stderr).contains("aborted by the peer"),
        "{}",
        text(&cat.stderr)
    );
}

#[test]
fn a_listener_takes_a_file_with_pauses_and_nothing_to_say() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    let arguments = ["cat", "-v", "-l", "6000", "--udp-port", "0"];
    let mut listener = anabranch(here, &arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut said = BufReader::new(listener.stderr.take().expect("piped"));
    let mut first = String::new();
    said.read_line(&mut first).expect("it says where");
    assert!(first.contains("SCTP port 6000"), "{first}");
    let udp_port = number_after(&first, "UDP port");
    let arguments = [
        "cat",
        "127.0.0.1",
        "-p",
        "6000",
        "--peer-udp-port",
        &udp_port,
        "-w",
        "0",
    ];
    let mut caller = anabranch(here, &arguments)
        .stdin(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut input = caller.stdin.take().expect("piped");
    let mut output = listener.stdout.take().expect("piped");
    for piece in ["one", "two"] {
        input.write_all(piece.as_bytes()).expect("it reads");
        let mut heard = [0; 3];
        output.read_exact(&mut heard).expect("it comes");
        assert_eq!(heard, piece.as_bytes());
    }
    drop(input);
    assert_eq!(caller.wait().expect("it ends").code(), Some(0));
    assert_eq!(listener.wait().expect("it ends").code(), Some(0));
}

/// A file that takes nothing is what a full disk looks like.
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
fn cat_pipes_through_an_echo() {
    let directory = tempfile::tempdir().expect("a directory");
    let echo = server(directory.path(), "echo", &[]);
    let port = echo.port("UDP port");
    let arguments = ["cat", "127.0.0.1", "--peer-udp-port", &port, "--lines"];
    let mut cat = anabranch(directory.path(), &arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let said: String = (0..2_000)
        .map(|number| format!("line {number}\n"))
        .collect();
    let mut input = cat.stdin.take().expect("piped");
    input.write_all(said.as_bytes()).expect("it reads");
    // The input ends when everything has come back: cat waits a while for answers then, but none is late.
    let mut heard = vec![0; said.len()];
    let output = cat.stdout.as_mut().expect("piped");
    output.read_exact(&mut heard).expect("all comes back");
    assert_eq!(text(&heard), said);
    drop(input);
    let rest = cat.wait_with_output().expect("it ends");
    assert!(rest.status.success() && rest.stdout.is_empty());
    let (status, served) = echo.end();
    assert_eq!(status, 0);
    assert!(served.contains("2000 messages"), "{served}");
}

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

#[test]
fn mistakes_are_told_before_anything_is_sent() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    fs::write(
        here.join("wrong.toml"),
        "anabranch = 1\n[[node]]\nnme = \"a\"\n",
    )
    .expect("a file");
    let link = "anabranch = 1\n[[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\n[[link]]\nname = \"l\"\nbetween = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n";
    fs::write(here.join("link.toml"), link).expect("a file");
    let lone = format!("{link}[[node]]\nname = \"c\"\n");
    fs::write(here.join("lone.toml"), lone).expect("a file");
    for (arguments, words) in [
        (
            &["perf", "127.0.0.1", "--profile", "rfc4961"][..],
            &["rfc4961", "rfc4960"][..],
        ),
        (
            &["perf", "127.0.0.1", "--set", "mtuu=1500 B"],
            &["mtuu", "did you mean `mtu`"],
        ),
        (&["perf", "127.0.0.1:99999"], &["99999", "1 to 65535"]),
        (&["perf", "127.0.0.1", "-l", "17 MiB"], &["16384 KiB"]),
        (&["perf", "127.0.0.1", "-l", "1x"], &["1x"]),
        (&["perf", "127.0.0.1", "-n", "0"], &["more"]),
        (
            &["serve", "sink", "-p", "7", "-p", "7"],
            &["port 7 is taken"],
        ),
        (&["perf", "127.0.0.1", "-t", "soon"], &["soon"]),
        (&["serve", "ecko"], &["ecko", "echo"]),
        (&["cat"], &["HOST"]),
        (&["emulate", "nowhere.toml"], &["nowhere.toml"]),
        (&["emulate", "wrong.toml"], &["nme", "wrong.toml:3"]),
        (
            &["emulate", "link.toml", "--between", "a,c"],
            &["no node c", "a, b"],
        ),
        (&["emulate", "link.toml", "--between", "a"], &["near,far"]),
        (
            &["emulate", "link.toml", "--listen", "here"],
            &["192.0.2.1:9899"],
        ),
        (&["emulate", "link.toml", "--ip"], &["--from"]),
        (
            &[
                "emulate",
                "link.toml",
                "--ip",
                "--listen",
                "127.0.0.1",
                "--from",
                "127.0.0.1",
                "--to",
                "127.0.0.2",
            ],
            &["two different ones"],
        ),
    ] {
        let output = run(here, arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        for word in words {
            assert!(said.contains(word), "{arguments:?}: {said}");
        }
    }
}

/// A short GEO path without loss: slow start into the receive window, by the clock of the path. Real sockets come to the
/// same goodput, less what the machine is late by, however much; never to more, which a wrong delay, rate or packet size
/// would show.
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
