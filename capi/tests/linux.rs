//! Compares the results of sockets API calls with those of Linux's SCTP.
//!
//! `calls.c`, `more.c`, `ports.c`, `edges.c` and `ends.c` write a line for each call. Their output
//! on Linux 6.1 is in `calls.linux` and files with corresponding names; the programs were compiled
//! with `-lsctp` and run as root three times, with the same result. The differences of this stack,
//! with the reasons, are in `calls.differences` and corresponding files.

mod common;

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use common::{compile, run, text};

/// Difference of two texts: their differing lines, with `-` and `+`, in order.
fn difference(old: &[&str], new: &[&str]) -> Vec<String> {
    // Length of the longest common subsequence of the remaining lines, for each pair of positions.
    let mut common = vec![vec![0_usize; new.len() + 1]; old.len() + 1];
    for (i, line) in old.iter().enumerate().rev() {
        for (j, other) in new.iter().enumerate().rev() {
            common[i][j] = match line == other {
                true => common[i + 1][j + 1] + 1,
                false => common[i + 1][j].max(common[i][j + 1]),
            };
        }
    }
    let (mut i, mut j, mut out) = (0, 0, Vec::new());
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || (i < old.len() && common[i + 1][j] >= common[i][j + 1]) {
            out.push(format!("- {}", old[i]));
            i += 1;
        } else {
            out.push(format!("+ {}", new[j]));
            j += 1;
        }
    }
    out
}

/// Compares the output of the C program `name` on this stack with its output on Linux.
fn compare(name: &str, port: &str) {
    let folder = tempfile::tempdir().expect("a directory");
    let program = compile(name, folder.path());
    let output = run(Command::new(program).arg(port));
    let ours = String::from_utf8_lossy(&output.stdout).into_owned();
    if let Some(path) = env::var_os("CALLS_TO") {
        fs::write(Path::new(&path).join(name), &ours).expect("a file");
    }
    assert!(output.status.success(), "{}", text(&output));
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let read =
        |kind: &str| fs::read_to_string(tests.join(format!("{name}.{kind}"))).expect("a file");
    let (linux, listed) = (read("linux"), read("differences"));
    let [linux, ours, listed] =
        [&linux, &ours, &listed].map(|text| text.lines().collect::<Vec<_>>());
    let found = difference(&linux, &ours);
    let listed: Vec<_> = listed
        .into_iter()
        .filter(|line| line.starts_with("- ") || line.starts_with("+ "))
        .collect();
    assert_eq!(found, listed, "found, and listed in {name}.differences");
}

#[test]
fn calls_end_as_with_linux_but_for_what_is_listed() {
    compare("calls", "5001");
}

#[test]
fn more_calls_end_as_with_linux_but_for_what_is_listed() {
    compare("more", "5101");
}

#[test]
fn calls_of_ports_and_events_end_as_with_linux_but_for_what_is_listed() {
    compare("ports", "5201");
}

#[test]
fn calls_with_wrong_arguments_end_as_with_linux_but_for_what_is_listed() {
    compare("edges", "5301");
}

#[test]
fn calls_without_an_association_end_as_with_linux_but_for_what_is_listed() {
    compare("ends", "5401");
}

#[test]
fn differences_are_found() {
    let found = difference(&["a", "b", "c"], &["a", "x", "c", "d"]);
    assert_eq!(found, ["- b", "+ x", "+ d"]);
    assert!(difference(&["a"], &["a"]).is_empty());
}
