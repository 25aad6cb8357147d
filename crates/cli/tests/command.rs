//! The command as a user meets it: exit status, standard output, standard error, files.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

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
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command.current_dir(directory).args(arguments).env("NO_COLOR", "1").output().expect("the command starts")
}

fn status(output: &Output) -> i32 {
    output.status.code().unwrap_or(-1)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
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
        assert!(directory.path().join("results").join(file).exists(), "{file}");
    }
    let manifest = fs::read_to_string(directory.path().join("results/manifest.json")).expect("a manifest");
    assert!(!manifest.contains(&directory.path().display().to_string()), "the manifest names no path of the host");
    let shown = anabranch(directory.path(), &["show", "results"]);
    assert_eq!((status(&shown), text(&shown.stderr)), (0, String::new()));
}

#[test]
fn a_wrong_spec_is_status_2_and_runs_nothing() {
    let directory = with_spec();
    let ran = anabranch(directory.path(), &["run", "pair.toml", "--set", "rate=2 Mbits", "--out", "results"]);
    assert_eq!(status(&ran), 2);
    assert!(text(&ran.stderr).contains("did you mean \"Mbit/s\"?"), "{}", text(&ran.stderr));
    assert!(!directory.path().join("results").exists());
}

#[test]
fn what_is_not_there_is_status_2() {
    let directory = with_spec();
    let cases: [&[&str]; 6] = [
        &["run", "pear.toml"],
        &["reproduce", "alamgir2020"],
        &["reproduce", "ho2008"],
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
fn an_unwritable_directory_is_status_1() {
    let directory = with_spec();
    fs::write(directory.path().join("results"), b"a file").expect("a file");
    let ran = anabranch(directory.path(), &["run", "pair.toml", "--out", "results"]);
    assert_eq!(status(&ran), 1);
    assert!(text(&ran.stderr).contains("cannot write results"), "{}", text(&ran.stderr));
}

#[test]
fn a_capture_is_a_pcapng_file() {
    let directory = with_spec();
    let ran = anabranch(directory.path(), &["run", "pair.toml", "--capture", "wire=wire.pcapng"]);
    assert_eq!(status(&ran), 0, "{}", text(&ran.stderr));
    let bytes = fs::read(directory.path().join("wire.pcapng")).expect("a capture");
    assert_eq!(bytes.first_chunk::<4>(), Some(&[0x0a, 0x0d, 0x0d, 0x0a]));
    assert!(bytes.len() > 100_000, "{} bytes", bytes.len());
    let wrong = anabranch(directory.path(), &["run", "pair.toml", "--capture", "wiere=wire.pcapng"]);
    assert_eq!(status(&wrong), 2, "{}", text(&wrong.stderr));
}

#[test]
fn papers_lists_the_five_and_the_schema_is_json() {
    let directory = with_spec();
    let papers = text(&anabranch(directory.path(), &["papers"]).stdout);
    for paper in ["alamgir2002", "atiquzzaman2002", "rafiq2007", "tsunoda2007", "ho2008"] {
        assert!(papers.contains(paper), "{papers}");
    }
    let schema = text(&anabranch(directory.path(), &["schema"]).stdout);
    let schema: serde_json::Value = serde_json::from_str(&schema).expect("JSON");
    assert!(schema["properties"]["link"].is_object());
}

#[test]
fn a_part_of_a_paper_is_reproduced() {
    let directory = with_spec();
    let ran = anabranch(directory.path(), &["reproduce", "alamgir2002", "--only", "fig-8", "--out", "results"]);
    assert_eq!(status(&ran), 0, "{}", text(&ran.stderr));
    let table = fs::read_to_string(directory.path().join("results/tables/fig-8.csv")).expect("a table");
    assert!(table.starts_with("series,x_name,x,metric,value,ci95,replications,unit,published,verdict\n"), "{table}");
}
