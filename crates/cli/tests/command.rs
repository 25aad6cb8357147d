//! The command as users see it: exit status, standard output, standard error, files.

mod common;
#[path = "command/elements.rs"]
mod elements;
#[path = "command/help.rs"]
mod help;
#[path = "command/renamed.rs"]
mod renamed;

use std::fs;
use std::path::Path;
use std::process::Output;

use common::{command, text};

const SPEC: &str = r#"
anabranch = 1
name = "pair"
[parameters]
rate = "1 Mbit/s"
[world]
duration = "5 s"
[[node]]
name = "source"
[[node]]
name = "sink"
[[link]]
name = "wire"
between = ["source", "sink"]
rate = "$rate"
delay = "10 ms"
[[flow]]
name = "sctp"
from = "source"
to = "sink"
workload = { kind = "bulk" }
transport = { protocol = "sctp" }
[[flow]]
name = "tcp"
from = "source"
to = "sink"
workload = { kind = "bulk" }
transport = { protocol = "tcp" }
"#;

fn anabranch(directory: &Path, arguments: &[&str]) -> Output {
    command(directory, arguments)
        .output()
        .expect("the command starts")
}

fn status(output: &Output) -> i32 {
    output.status.code().unwrap_or(-1)
}

fn with_spec() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("pair.toml"), SPEC).expect("a file");
    directory
}

#[test]
fn run_writes_a_directory_that_show_reads_and_is_quiet_off_a_terminal() {
    let directory = with_spec();
    let ran = anabranch(directory.path(), &["run", "pair.toml", "--out", "results"]);
    assert_eq!((status(&ran), text(&ran.stderr)), (0, String::new()));
    for file in ["manifest.json", "measures.csv", "report.html"] {
        assert!(
            directory.path().join("results").join(file).exists(),
            "{file}"
        );
    }
    let manifest =
        fs::read_to_string(directory.path().join("results/manifest.json")).expect("a manifest");
    assert!(
        !manifest.contains(&directory.path().display().to_string()),
        "the manifest names no path of the host"
    );
    let shown = anabranch(directory.path(), &["show", "results"]);
    assert_eq!((status(&shown), text(&shown.stderr)), (0, String::new()));
}

#[test]
fn ambiguous_settings_are_reported_with_the_results() {
    let directory = with_spec();
    let here = directory.path();
    let run = |more: &[&str]| {
        let common = [
            "run",
            "pair.toml",
            "--out",
            "results",
            "--replications",
            "3",
        ];
        let ran = anabranch(here, &[&common, more].concat());
        assert_eq!(status(&ran), 0, "{}", text(&ran.stderr));
        text(&ran.stderr)
    };
    let equal = "note: all 3 replications of main are equal";
    let said = run(&[]);
    assert!(said.contains(equal), "{said}");
    let page = fs::read_to_string(here.join("results/report.html")).expect("a page");
    assert!(
        page.contains(&equal["note: ".len()..]),
        "the page says it, too"
    );
    let lossy = "link.wire.loss={ model = \"bernoulli\", probability = 0.1 }";
    let said = run(&["--set", lossy]);
    assert_eq!(said, "");
    let said = run(&["--set", "flow.tcp.start=5 s"]);
    let late = "note: pair.toml: `flow.tcp.start`: 5 s, and no run is longer than 5 s";
    assert!(said.contains(late), "{said}");
}

#[test]
fn a_wrong_spec_is_status_2_and_runs_nothing() {
    let directory = with_spec();
    let ran = anabranch(
        directory.path(),
        &[
            "run",
            "pair.toml",
            "--set",
            "rate=2 Mbits",
            "--out",
            "results",
        ],
    );
    assert_eq!(status(&ran), 2);
    assert!(
        text(&ran.stderr).contains("did you mean \"Mbit/s\"?"),
        "{}",
        text(&ran.stderr)
    );
    assert!(!directory.path().join("results").exists());
}

#[test]
fn missing_files_and_names_exit_with_status_2() {
    let directory = with_spec();
    let cases: [&[&str]; 10] = [
        &["explore"],
        &["explore", "pear.toml"],
        &["explore", "--paper", "alamgir2020"],
        &["explore", "pair.toml", "--paper", "alamgir2002"],
        &["explore", "pair.toml", "--port", "65536"],
        &["run", "pear.toml"],
        &["reproduce", "alamgir2020"],
        &["show", "nowhere"],
        &["run", "pair.toml", "--only", "table-9"],
        &["run", "pair.toml", "--replications", "0"],
    ];
    for arguments in cases {
        let ran = anabranch(directory.path(), arguments);
        assert_eq!(status(&ran), 2, "{arguments:?}: {}", text(&ran.stderr));
        assert!(!ran.stderr.is_empty());
    }
}

#[test]
fn a_mistake_on_the_command_line_is_reported_with_what_is_allowed() {
    let directory = with_spec();
    let cases: &[(&[&str], &str)] = &[
        (
            &["run", "pair.toml", "--seed", "-1"],
            "found \"-1\"; write a whole number, 0 or more",
        ),
        (
            &["run", "pair.toml", "--jobs", "x"],
            "found \"x\"; write a whole number, 1 to 4294967295",
        ),
        (
            &["perf", "127.0.0.1", "-t", "-1"],
            "'--duration <TIME>': found \"-1 s\"; a time cannot be negative",
        ),
        (
            &["perf", "127.0.0.1", "-b", "-5"],
            "'--bitrate <RATE>': found \"-5 bit/s\"; a rate cannot be negative",
        ),
        (
            &["perf", "127.0.0.1", "-i", "-1"],
            "'--interval <TIME>': found \"-1 s\"; a time cannot be negative",
        ),
        (
            &["emulate", "pair.toml", "--duration", "-1s"],
            "'--duration <TIME>': found \"-1s\"; a time cannot be negative",
        ),
        (
            &["advise", "--rtt", "-5ms"],
            "'--rtt <TIME>': found \"-5ms\"; a time cannot be negative",
        ),
        (
            &["advise", "--rate", "-10Mbit"],
            "'--rate <RATE>': found \"-10Mbit/s\"; a rate cannot be negative",
        ),
        (
            &["serve", "sink", "--bytes", "5K"],
            "--bytes: found with the service sink; allowed with source",
        ),
        (
            &["serve", "echo", "--send-first"],
            "--send-first: found with the service echo; allowed with source",
        ),
        (
            &["serve", "sink", "--carrier", "ip", "--udp-port", "9899"],
            "--udp-port: found with --carrier ip",
        ),
        (
            &["perf", "::1", "--carrier", "ip", "--peer-udp-port", "77"],
            "--peer-udp-port: found with --carrier ip",
        ),
        (
            &[
                "advise", "--rtt", "50ms", "--rate", "1Mbit", "--loss", "0%", "--shell", "iridium",
            ],
            "--shell: found with --rtt; allowed for a path over satellites, with --from and --to",
        ),
        (
            &[
                "satellite-path",
                "--from",
                "1,1",
                "--to",
                "2,2",
                "--tle",
                "pair.toml",
            ],
            "--tle pair.toml: ",
        ),
        (
            &[
                "satellite-path",
                "--from",
                "1,1",
                "--to",
                "2,2",
                "--start",
                "2026-03-14",
            ],
            "--start: found the date 2026-03-14 00:00:00 UTC; a shell has no dates",
        ),
        (
            &[
                "satellite-path",
                "--from",
                "1,1",
                "--to",
                "2,2",
                "--start",
                "soon",
            ],
            "found \"soon\"; a date is in UTC",
        ),
        (&["run", "failovr"], "did you mean `failover`?"),
        (&["reproduce", "alamgir"], "did you mean `alamgir2002`?"),
        (
            &["run", "pair.toml", "--capture", "wir=x.pcapng"],
            "--capture: found \"wir\"; allowed: wire; did you mean `wire`?",
        ),
        (
            &["run", "pair.toml", "--capture", "wire=nowhere/x.pcapng"],
            "but there is no directory nowhere",
        ),
        (
            &["run", "pair.toml", "--set", "rat=1"],
            "did you mean `rate`?",
        ),
        (
            &["show", "pair.toml"],
            "pair.toml is not a results directory",
        ),
        (
            &["serve", "sink", "--port", "0"],
            "found \"0\"; write a whole number, 1 to 65535",
        ),
        (
            &["serve", "sink", "--metrics", "x"],
            "found \"x\"; write an IP address and a port",
        ),
        (
            &["perf", "127.0.0.1", "--peer-udp-port", "0"],
            "found \"0\"; write a whole number, 1 to 65535",
        ),
        (
            &["emulate", "pair.toml", "--to", "127.0.0.1"],
            "--to: found 127.0.0.1, which names no port to send to",
        ),
        (
            &["wrap", "--local", "x", "--", "true"],
            "found \"x\"; write an IP address: 192.0.2.1",
        ),
        (
            &[
                "satellite-path",
                "--from",
                "1,1",
                "--to",
                "2,2",
                "--shell",
                "starlink",
            ],
            "--shell: found \"starlink\"; allowed: starlink-1, ",
        ),
        (&["man", "rnu"], "did you mean `run`?"),
        (
            &["settings", "stcp"],
            "TRANSPORT: found \"stcp\"; allowed: tcp, sctp, udp, quic, dcsctp, rtc-sctp, sctp-proto, keys, metrics; did you mean `tcp`?",
        ),
    ];
    for (arguments, words) in cases {
        let ran = anabranch(directory.path(), arguments);
        let told = text(&ran.stderr);
        assert_eq!(status(&ran), 2, "{arguments:?}: {told}");
        assert!(told.contains(words), "{arguments:?}: {told}");
    }
}

#[test]
fn a_file_as_results_directory_is_status_2() {
    let directory = with_spec();
    fs::write(directory.path().join("results"), b"a file").expect("a file");
    let ran = anabranch(directory.path(), &["run", "pair.toml", "--out", "results"]);
    assert_eq!(status(&ran), 2);
    assert!(
        text(&ran.stderr).contains("cannot write results"),
        "{}",
        text(&ran.stderr)
    );
}

#[test]
fn a_directory_that_is_not_finished_is_distinguished_from_others_and_one_of_two_words_is_quoted() {
    let directory = with_spec();
    let here = directory.path();
    fs::create_dir_all(here.join("begun/runs")).expect("a directory");
    let shown = anabranch(here, &["show", "begun"]);
    assert_eq!(status(&shown), 2);
    let said = text(&shown.stderr);
    assert!(said.contains("begun is not finished: repeat"), "{said}");
    // No more threads are started than there are runs, even with a larger number of jobs.
    let ran = anabranch(
        here,
        &["run", "pair.toml", "--jobs", "100000", "--out", "two words"],
    );
    assert_eq!(status(&ran), 0, "{}", text(&ran.stderr));
    let said = text(&ran.stdout);
    assert!(
        said.contains("tables: anabranch show 'two words'\n"),
        "{said}"
    );
}

#[test]
fn a_capture_is_a_pcapng_file() {
    let directory = with_spec();
    let ran = anabranch(
        directory.path(),
        &["run", "pair.toml", "--capture", "wire=wire.pcapng"],
    );
    assert_eq!(status(&ran), 0, "{}", text(&ran.stderr));
    let bytes = fs::read(directory.path().join("wire.pcapng")).expect("a capture");
    assert_eq!(bytes.first_chunk::<4>(), Some(&[0x0a, 0x0d, 0x0d, 0x0a]));
    assert!(bytes.len() > 100_000, "{} bytes", bytes.len());
    let wrong = anabranch(
        directory.path(),
        &["run", "pair.toml", "--capture", "wiere=wire.pcapng"],
    );
    assert_eq!(status(&wrong), 2, "{}", text(&wrong.stderr));
}

#[test]
fn papers_lists_the_five_and_the_schema_is_json() {
    let directory = with_spec();
    let papers = text(&anabranch(directory.path(), &["papers"]).stdout);
    for paper in [
        "alamgir2002",
        "atiquzzaman2002",
        "rafiq2007",
        "tsunoda2007",
        "ho2008",
    ] {
        assert!(papers.contains(paper), "{papers}");
    }
    let schema = text(&anabranch(directory.path(), &["schema"]).stdout);
    let schema: serde_json::Value = serde_json::from_str(&schema).expect("JSON");
    assert!(schema["properties"]["link"].is_object());
}

#[test]
fn a_part_of_a_paper_is_reproduced() {
    let directory = with_spec();
    let ran = anabranch(
        directory.path(),
        &[
            "reproduce",
            "alamgir2002",
            "--only",
            "fig-8",
            "--out",
            "results",
        ],
    );
    assert_eq!(status(&ran), 0, "{}", text(&ran.stderr));
    let table =
        fs::read_to_string(directory.path().join("results/tables/fig-8.csv")).expect("a table");
    let head = "series,x_name,x,metric,value,ci95,replications,unit,published,verdict,band_low,band_high,rank";
    assert_eq!(table.lines().next(), Some(head));
}

/// Replaces numbers by `#` and runs of blanks by one blank, so that only the structure of the
/// advice is compared.
fn masked(text: &str) -> String {
    let mut masked = String::new();
    for line in text.lines() {
        let words = line.split_whitespace().map(|word| {
            if word.parse::<f64>().is_ok() {
                "#"
            } else {
                word
            }
        });
        masked.push_str(&words.collect::<Vec<_>>().join(" "));
        masked.push('\n');
    }
    masked
}

const SMALL_PATH: [&str; 15] = [
    "advise",
    "--rtt",
    "100ms",
    "--rate",
    "1Mbit",
    "--loss",
    "0%",
    "--profile",
    "rfc9260",
    "--congestion",
    "sctp",
    "--streams",
    "1,2",
    "--duration",
    "5s",
];

#[test]
fn advice_is_shown_and_its_evidence_is_kept() {
    let directory = tempfile::tempdir().expect("a directory");
    let kept: Vec<&str> = SMALL_PATH
        .iter()
        .copied()
        .chain(["--out", "kept"])
        .collect();
    let advised = anabranch(directory.path(), &kept);
    assert_eq!(
        (status(&advised), text(&advised.stderr)),
        (0, String::new())
    );
    let words = text(&advised.stdout);
    let advice: Vec<&str> = words
        .lines()
        .take_while(|line| !line.starts_with("Goodput by receive buffer"))
        .collect();
    insta::assert_snapshot!("advice", masked(&advice.join("\n")));
    for file in [
        "advice.txt",
        "spec.toml",
        "report.html",
        "manifest.json",
        "figures/goodput.svg",
        "tables/streams-2.csv",
    ] {
        assert!(directory.path().join("kept").join(file).exists(), "{file}");
    }
    // The spec that `advise` has written should produce the same tables when it is run by
    // `anabranch run`.
    let table = |name: &str| {
        fs::read(directory.path().join(name).join("tables/streams-1.csv")).expect("a table")
    };
    let again = anabranch(
        directory.path(),
        &["run", "kept/spec.toml", "--out", "again"],
    );
    assert_eq!(status(&again), 0, "{}", text(&again.stderr));
    assert_eq!(table("kept"), table("again"));
    // Without --out the advice is the same, and no file is written.
    let shown = anabranch(directory.path(), &SMALL_PATH);
    assert!(
        text(&shown.stdout).starts_with(&advice.join("\n")),
        "{}",
        text(&shown.stdout)
    );
    assert_eq!(
        fs::read_dir(directory.path()).expect("a directory").count(),
        2
    );
}

#[test]
fn a_path_that_makes_no_sense_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let refused = |arguments: &[&str]| {
        let all: Vec<&str> = ["advise", "--rate", "10Mbit"]
            .iter()
            .chain(arguments)
            .copied()
            .collect();
        let output = anabranch(directory.path(), &all);
        assert_eq!(
            (status(&output), text(&output.stdout)),
            (2, String::new()),
            "{arguments:?}"
        );
        text(&output.stderr)
    };
    let unit = refused(&["--rtt", "560", "--loss", "1%"]);
    assert!(unit.contains("allowed units: s, ms, us"), "{unit}");
    let name = refused(&["--rtt", "560ms", "--loss", "1%", "--congestion", "westwod"]);
    assert!(
        name.contains("allowed: sctp, cubic, bbr, bbr1, vegas, veno, hybla, illinois, westwood, binomial; did you mean `westwood`?"),
        "{name}"
    );
    let share = refused(&["--rtt", "560ms", "--loss", "1%", "--goodput", "100%"]);
    assert!(
        share.contains("--goodput: found 100 %; allowed: 1 % to 99 %"),
        "{share}"
    );
    let loss = refused(&["--rtt", "560ms", "--loss", "-1%"]);
    assert!(
        loss.contains("'--loss <SHARE>': found \"-1%\"; write a share of 0 % to 100 %"),
        "{loss}"
    );
}

/// The CSV file and the Parquet file have the same rows; a Parquet file requires --places.
#[test]
fn paths_of_places_are_written_in_both_formats() {
    let directory = tempfile::tempdir().expect("a directory");
    let places =
        "name,latitude,longitude\nParis,48.85,2.35\nTokyo,35.69,139.69\nQuito,-0.18,-78.47\n";
    fs::write(directory.path().join("places.csv"), places).expect("a file");
    let arguments = [
        "satellite-path",
        "--places",
        "places.csv",
        "--shell",
        "kuiper-1",
        "--duration",
        "10s",
        "--step",
        "5s",
        "--csv",
        "pairs.csv",
        "--parquet",
        "pairs.parquet",
    ];
    let ran = anabranch(directory.path(), &arguments);
    assert_eq!(status(&ran), 0, "{}", text(&ran.stderr));
    let rows = fs::read_to_string(directory.path().join("pairs.csv")).expect("a table");
    assert_eq!(rows.lines().count(), 4);
    assert!(
        rows.lines()
            .nth(1)
            .is_some_and(|row| row.starts_with("Paris,Tokyo,")),
        "{rows}"
    );
    let parquet = fs::read(directory.path().join("pairs.parquet")).expect("a file");
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    for name in ["steps_without_path", "Paris", "Quito"] {
        let found = parquet
            .windows(name.len())
            .any(|part| part == name.as_bytes());
        assert!(found, "{name}");
    }
    let refused = [
        "satellite-path",
        "--from",
        "1,1",
        "--to",
        "2,2",
        "--parquet",
        "x",
    ];
    assert_eq!(status(&anabranch(directory.path(), &refused)), 2);
}
