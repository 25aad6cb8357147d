//! Interrupted runs: finished runs are kept, and the same command continues.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::{SWEEP, anabranch, assert_same, command, results, succeeds, text, with};

/// A spec with enough runs to be interrupted.
fn long() -> String {
    SWEEP
        .replace("replications = 4", "replications = 12")
        .replace("duration = \"20 s\"", "duration = \"200 s\"")
}

/// The content of the journal: its header, and a line for each run.
fn journal(directory: &Path) -> String {
    fs::read_to_string(directory.join("runs/1.journal")).unwrap_or_default()
}

fn finished(directory: &Path) -> usize {
    let whole = journal(directory).matches('\n').count();
    whole.saturating_sub(1)
}

/// Number of runs of the spec.
const RUNS: usize = 37;

/// Starts a sweep, and sends it a signal when this number of its runs is finished. On a busy
/// machine the sweep may end before the test notices this; then it is repeated in another
/// directory. Returns the directory and the output of the interrupted sweep.
fn caught(
    here: &Path,
    least: usize,
    signal: &str,
    begin: impl Fn(&str) -> Command,
) -> (String, Output) {
    for attempt in 0..100 {
        let out = format!("out-{attempt}");
        let mut child = begin(&out).spawn().expect("the command starts");
        let is_over = loop {
            if let Some(status) = child.try_wait().expect("a child") {
                assert!(status.success(), "{status}");
                break true;
            }
            if finished(&here.join(&out)) >= least {
                break false;
            }
            std::thread::yield_now();
        };
        if is_over {
            continue;
        }
        let kill = format!("kill -s {signal} {}", child.id());
        let sent = Command::new("sh").args(["-c", &kill]).status();
        assert!(sent.expect("sh starts").success());
        let output = child.wait_with_output().expect("it ends");
        if output.status.signal().is_some() && finished(&here.join(&out)) < RUNS {
            return (out, output);
        }
    }
    panic!("it is always over before anybody looks");
}

#[test]
fn a_killed_run_goes_on_and_ends_as_if_nothing_had_happened() {
    let directory = with("long.toml", &long());
    let here = directory.path();
    succeeds(here, &["run", "long.toml", "--out", "whole"]);
    fn arguments(out: &str) -> [&str; 6] {
        ["run", "long.toml", "--jobs", "2", "--out", out]
    }
    let (out, _) = caught(here, 3, "KILL", |out| {
        let mut command = command(here, &arguments(out));
        command.stdout(Stdio::null());
        command
    });
    let killed = here.join(&out);
    let kept = finished(&killed);
    assert!((3..RUNS).contains(&kept), "{kept} runs were finished");
    assert!(!killed.join("report.html").exists());
    let before = journal(&killed);
    succeeds(here, &arguments(&out));
    let after = journal(&killed);
    let whole = &before[..before.rfind('\n').map_or(0, |end| end + 1)];
    assert!(
        after.starts_with(whole),
        "what was finished is not made again"
    );
    assert_eq!(finished(&killed), RUNS);
    assert_same(&results(&here.join("whole")), &results(&killed));
}

#[test]
fn an_interrupted_run_says_what_is_kept_and_ends_by_the_signal() {
    let directory = with("long.toml", &long());
    let here = directory.path();
    let (out, output) = caught(here, 1, "INT", |out| {
        // Sets the default action of the signal, because the environment of the tests may ignore
        // it.
        let mut command = Command::new("env");
        command
            .current_dir(here)
            .args(["--default-signal=INT", env!("CARGO_BIN_EXE_anabranch")])
            .args(["run", "long.toml", "--jobs", "1", "--out", out])
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        command
    });
    assert_eq!(output.status.signal(), Some(2), "as without a handler");
    assert_eq!(
        text(&output.stderr),
        format!("interrupted\nFinished runs are kept in {out}; repeat the command to continue.\n")
    );
}

/// A limit on the size of files has the same effect as a full disk: a write fails.
#[test]
fn a_disk_that_is_full_in_the_middle_loses_nothing_that_was_finished() {
    let directory = with("sweep.toml", SWEEP);
    let here = directory.path();
    succeeds(here, &["run", "sweep.toml", "--out", "whole"]);
    // Records of runs fit into 4 KiB; samples and the files that contain them do not.
    let script = "ulimit -f 4; trap '' XFSZ; exec \"$0\" run sweep.toml --jobs 1 --out full";
    let output = Command::new("bash")
        .current_dir(here)
        .args(["-c", script, env!("CARGO_BIN_EXE_anabranch")])
        .output()
        .expect("bash starts");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot") && said.contains("full"), "{said}");
    assert!(said.contains("repeat the command to continue"), "{said}");
    let kept = finished(&here.join("full"));
    succeeds(here, &["run", "sweep.toml", "--jobs", "1", "--out", "full"]);
    assert!(finished(&here.join("full")) >= kept);
    assert_same(&results(&here.join("whole")), &results(&here.join("full")));
}

#[test]
fn a_disk_that_is_full_at_the_end_keeps_the_runs() {
    let directory = with(
        "sweep.toml",
        &SWEEP.replace("record = [{ flow = \"sctp\", probes = [\"cwnd\"] }]", ""),
    );
    let here = directory.path();
    let spec = fs::read_to_string(here.join("sweep.toml")).expect("the spec");
    fs::write(
        here.join("sweep.toml"),
        &spec[..spec.find("[[figure]]").expect("a figure")],
    )
    .expect("a file");
    succeeds(here, &["run", "sweep.toml", "--out", "whole"]);
    let script = "ulimit -f 5; trap '' XFSZ; exec \"$0\" run sweep.toml --out full";
    let output = Command::new("bash")
        .current_dir(here)
        .args(["-c", script, env!("CARGO_BIN_EXE_anabranch")])
        .output()
        .expect("bash starts");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert_eq!(
        finished(&here.join("full")),
        13,
        "every run was finished and is kept: {}",
        text(&output.stderr)
    );
    let parts: Vec<_> = crate::files(&here.join("full"))
        .into_keys()
        .filter(|name| name.ends_with(".part"))
        .collect();
    assert_eq!(parts, Vec::<String>::new(), "what was begun is removed");
    succeeds(here, &["run", "sweep.toml", "--out", "full"]);
    assert_same(&results(&here.join("whole")), &results(&here.join("full")));
}

#[test]
fn a_directory_that_cannot_be_written_says_so_before_anything_is_run() {
    let directory = with("sweep.toml", SWEEP);
    let here = directory.path();
    fs::write(here.join("taken"), b"a file").expect("a file");
    for out in ["taken", "taken/below", "/proc/anabranch"] {
        let output = anabranch(here, &["run", "sweep.toml", "--out", out]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{out}: {said}");
        assert!(
            said.starts_with("error: cannot write ") && said.contains(out),
            "{said}"
        );
        assert!(said.contains("--out"), "it says what to do: {said}");
    }
    assert_eq!(fs::read(here.join("taken")).expect("a file"), b"a file");
}
