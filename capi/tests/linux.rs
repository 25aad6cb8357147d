//! What calls of the sockets API come to, beside Linux's SCTP: `calls.c` writes a line for each, `calls.linux` is what it wrote on
//! Linux 6.1 (compiled with `-lsctp`, run as root, three times with the same result), and `calls.differences` is where this stack differs,
//! with the reason.

mod common;

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use common::{compile, run, text};

/// Where two texts differ: their lines with `-` and `+`, in order.
fn difference(old: &[&str], new: &[&str]) -> Vec<String> {
    // The longest common part of what is left from each pair of places.
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

#[test]
fn calls_end_as_with_linux_but_for_what_is_listed() {
    let folder = tempfile::tempdir().expect("a directory");
    let program = compile("calls", folder.path());
    let output = run(Command::new(program).arg("5001"));
    assert!(output.status.success(), "{}", text(&output));
    let ours = String::from_utf8(output.stdout).expect("text");
    if let Some(path) = env::var_os("CALLS_TO") {
        fs::write(path, &ours).expect("a file");
    }
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let read = |name: &str| fs::read_to_string(tests.join(name)).expect("a file");
    let (linux, listed) = (read("calls.linux"), read("calls.differences"));
    let [linux, ours, listed] =
        [&linux, &ours, &listed].map(|text| text.lines().collect::<Vec<_>>());
    let found = difference(&linux, &ours);
    let listed: Vec<_> = listed
        .into_iter()
        .filter(|line| line.starts_with("- ") || line.starts_with("+ "))
        .collect();
    assert_eq!(found, listed, "found, and listed in calls.differences");
}

#[test]
fn differences_are_found() {
    let found = difference(&["a", "b", "c"], &["a", "x", "c", "d"]);
    assert_eq!(found, ["- b", "+ x", "+ d"]);
    assert!(difference(&["a"], &["a"]).is_empty());
}
