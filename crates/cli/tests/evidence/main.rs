//! Promises of the command, tested from outside: invalid specs, interrupted runs, full disks,
//! captures that other programs can read, and a spec of a user.

mod captures;
#[path = "../common/mod.rs"]
mod common;
mod interrupted;
mod options;
mod own;
mod repeat;
mod schema;
mod specs;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Output;

use common::{command, text};
use tempfile::TempDir;

/// Runs the command.
fn anabranch(directory: &Path, arguments: &[&str]) -> Output {
    command(directory, arguments)
        .output()
        .expect("the command starts")
}

/// Runs the command, which must succeed with an empty standard error, and returns its standard
/// output.
fn succeeds(directory: &Path, arguments: &[&str]) -> String {
    let output = anabranch(directory, arguments);
    assert_eq!(
        (output.status.code(), text(&output.stderr)),
        (Some(0), String::new()),
        "{arguments:?}"
    );
    text(&output.stdout)
}

fn temporary() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

/// A directory with a file in it.
fn with(name: &str, contents: &str) -> TempDir {
    let directory = temporary();
    fs::write(directory.path().join(name), contents).expect("a file");
    directory
}

/// Content of all files in a directory, by path.
fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![directory.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path
                    .strip_prefix(directory)
                    .expect("it is inside")
                    .display()
                    .to_string();
                found.insert(name, fs::read(&path).expect("a file"));
            }
        }
    }
    found
}

/// The result files, without `runs/`, which is internal.
fn results(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = files(directory);
    all.retain(|name, _| !name.starts_with("runs/"));
    assert!(all.contains_key("report.html"), "{:?}", all.keys());
    all
}

fn assert_same(one: &BTreeMap<String, Vec<u8>>, other: &BTreeMap<String, Vec<u8>>) {
    assert_eq!(
        one.keys().collect::<Vec<_>>(),
        other.keys().collect::<Vec<_>>()
    );
    for (name, bytes) in one {
        assert!(bytes == &other[name], "{name} differs");
    }
}

/// TCP and SCTP over a lossy link, with a sweep, a table, and a recorded window.
const SWEEP: &str = r#"
anabranch = 1
name = "sweep"
[parameters]
rate = "2 Mbit/s"
[world]
duration = "20 s"
[[node]]
name = "source"
[[node]]
name = "sink"
[[link]]
name = "wire"
between = ["source", "sink"]
rate = "$rate"
delay = "20 ms"
queue = "20 packets"
loss = { forward = { model = "bernoulli", probability = 0.01 } }
[[flow]]
name = "tcp"
from = "source"
to = "sink"
start = { uniform = ["0 s", "1 s"] }
workload = { kind = "bulk" }
transport = { protocol = "tcp" }
[[flow]]
name = "sctp"
from = "source"
to = "sink"
start = { uniform = ["0 s", "1 s"] }
workload = { kind = "bulk" }
transport = { protocol = "sctp" }
[[measure]]
metric = "goodput"
flow = "tcp"
[[measure]]
metric = "goodput"
flow = "sctp"
[[experiment]]
id = "rates"
replications = 4
quick_replications = 2
record = [{ flow = "sctp", probes = ["cwnd"] }]
sweep = [{ parameter = "rate", values = ["1 Mbit/s", "2 Mbit/s", "4 Mbit/s"] }]
[[experiment]]
id = "other"
replications = 1
[[table]]
id = "goodput"
title = "Goodput"
experiment = "rates"
row = [{ series = "tcp", metric = "goodput" }, { series = "sctp", metric = "goodput" }]
[[figure]]
id = "window"
title = "Window"
experiment = "rates"
curve = [{ label = "cwnd", flow = "sctp", probe = "cwnd" }]
"#;
