//! A sweep on several machines: shards and their merged results.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{command, text};

const SPEC: &str = r#"anabranch = 1
name = "sweep"
[reference]
published = "mine.csv"
[parameters]
loss = 0.0
[world]
duration = "10 s"
[[node]]
name = "a"
[[node]]
name = "b"
[[link]]
name = "wire"
between = ["a", "b"]
rate = "1 Mbit/s"
delay = "10 ms"
queue = "10 packets"
loss = { forward = { model = "bernoulli", probability = "$loss" } }
[[flow]]
name = "sctp"
from = "a"
to = "b"
workload = { kind = "bulk" }
transport = { protocol = "sctp" }
[[measure]]
metric = "goodput"
flow = "sctp"
[[experiment]]
id = "losses"
replications = 5
sweep = [{ parameter = "loss", values = [0.0, 0.02] }]
record = [{ flow = "sctp", probes = ["cwnd"] }]
[[table]]
id = "goodput"
title = "Goodput"
row = [{ series = "sctp", metric = "goodput" }]
[[figure]]
id = "cwnd"
title = "cwnd"
kind = "time"
experiment = "losses"
curve = [{ label = "cwnd", flow = "sctp", probe = "cwnd" }]
"#;
const MINE: &str = "where,series,x_name,x,metric,value\ngoodput,sctp,loss,0.02,goodput,500000\n";

/// Runs the command; returns its status and output.
fn says(directory: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let said = command(directory, arguments)
        .output()
        .expect("the command starts");
    (
        said.status.code(),
        text(&[said.stdout, said.stderr].concat()),
    )
}

fn succeeds(directory: &Path, arguments: &[&str]) -> String {
    let (status, said) = says(directory, arguments);
    assert_eq!(status, Some(0), "{arguments:?}: {said}");
    said
}

/// Content of all files in a directory, by path.
fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut open = vec![directory.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(directory).expect("below it");
                let mut bytes = fs::read(&path).expect("a file");
                if name.extension().is_some_and(|it| it == "journal") {
                    // Sorted, because runs are listed in the order in which they ended.
                    let mut lines: Vec<&[u8]> = bytes.split_inclusive(|it| *it == b'\n').collect();
                    lines.sort();
                    bytes = lines.concat();
                }
                files.insert(name.to_owned(), bytes);
            }
        }
    }
    files
}

fn prepared() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("my.toml"), SPEC).expect("a spec");
    fs::write(directory.path().join("mine.csv"), MINE).expect("a reference");
    directory
}

#[test]
fn three_shards_give_every_file_of_one_run() {
    let directory = prepared();
    let here = directory.path();
    succeeds(here, &["run", "my.toml", "--out", "whole"]);
    for (shard, runs) in [("1/3", "4"), ("2/3", "3"), ("3/3", "3")] {
        let said = succeeds(here, &["run", "my.toml", "--shard", shard]);
        assert!(
            said.contains(&format!("shard {shard}: {runs} of 10 runs")),
            "{said}"
        );
    }
    let (status, said) = says(here, &["show", "sweep-1-of-3"]);
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("anabranch merge"), "{said}");
    let shards = ["sweep-3-of-3", "sweep-1-of-3", "sweep-2-of-3"];
    // The reference values come from the shards, so the file is not needed.
    fs::remove_file(here.join("mine.csv")).expect("a reference");
    let merged = succeeds(
        here,
        &[&["merge"], &shards[..], &["--out", "merged"]].concat(),
    );
    assert!(
        merged.contains("10 runs") && merged.contains("printed values: "),
        "{merged}"
    );
    let (merged, whole) = (
        contents(&here.join("merged")),
        contents(&here.join("whole")),
    );
    for name in [
        "report.html",
        "tables/goodput.csv",
        "figures/cwnd.svg",
        "series/losses.parquet",
        "measures/losses.parquet",
    ] {
        assert!(whole.contains_key(Path::new(name)), "{name}");
    }
    let names =
        |files: &BTreeMap<PathBuf, Vec<u8>>| -> Vec<PathBuf> { files.keys().cloned().collect() };
    assert_eq!(names(&merged), names(&whole));
    for (name, bytes) in &whole {
        assert!(
            merged.get(name) == Some(bytes),
            "{} differs",
            name.display()
        );
    }
}

#[test]
fn wrong_shards_are_refused() {
    let directory = prepared();
    let here = directory.path();
    for wrong in ["0/3", "4/3", "3", "1/0", "x/y"] {
        let (status, said) = says(here, &["run", "my.toml", "--shard", wrong]);
        assert_eq!(status, Some(2), "{said}");
        assert!(said.contains("write i/n"), "{said}");
    }
    succeeds(here, &["run", "my.toml", "--shard", "1/2", "--out", "one"]);
    succeeds(
        here,
        &[
            "run", "my.toml", "--shard", "2/2", "--seed", "2", "--out", "two",
        ],
    );
    let (status, said) = says(here, &["merge", "one", "two"]);
    assert_eq!(status, Some(2), "{said}");
    assert!(
        said.contains("one and two are shards of different plans: seed 1 and 2"),
        "{said}"
    );
    let (status, said) = says(here, &["merge", "one"]);
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("missing: shard 2/2"), "{said}");
    let (status, said) = says(here, &["run", "my.toml", "--shard", "2/2", "--out", "one"]);
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("one holds shard 1/2"), "{said}");
    fs::write(here.join("mine.csv"), MINE.replace("500000", "600000")).expect("a reference");
    succeeds(
        here,
        &["run", "my.toml", "--shard", "2/2", "--out", "other"],
    );
    let (status, said) = says(here, &["merge", "one", "other"]);
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("the files of [reference] differ"), "{said}");
    assert!(!here.join("sweep").exists(), "something was put together");
    let capture = [
        "run",
        "my.toml",
        "--shard",
        "2/2",
        "--capture",
        "wire=a.pcapng",
    ];
    let (status, said) = says(here, &capture);
    assert_eq!(status, Some(2), "{said}");
    let bare = SPEC.replace("record = [{ flow = \"sctp\", probes = [\"cwnd\"] }]\n", "");
    let (bare, _) = bare.split_once("[[figure]]").expect("a figure");
    fs::write(here.join("bare.toml"), bare).expect("a spec");
    let (status, said) = says(here, &["run", "bare.toml", "--record-all"]);
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("no experiment has a `record`"), "{said}");
}

#[test]
fn a_job_array_has_scripts_that_make_every_shard_and_merge_them() {
    let directory = prepared();
    let here = directory.path();
    let said = succeeds(
        here,
        &[
            "slurm",
            "my.toml",
            "--array",
            "3",
            "--out",
            "the out",
            "--set",
            "link.wire.rate=2 Mbit/s",
            "--jobs",
            "2",
            "--sbatch=--partition=long",
            "--dry-run",
        ],
    );
    assert!(said.contains("3 tasks for 10 runs"), "{said}");
    let scripts = here.join("the out/slurm");
    let array = fs::read_to_string(scripts.join("array.sh")).expect("a script");
    assert!(
        array.contains("#SBATCH --array=1-3 --ntasks=1 --cpus-per-task=2\n"),
        "{array}"
    );
    assert!(array.contains("#SBATCH --partition=long\n"), "{array}");
    // Runs the scripts without Slurm.
    let shell = |script: &str, task: &str| {
        let said = Command::new("sh")
            .arg(scripts.join(script))
            .env("SLURM_ARRAY_TASK_ID", task)
            .output()
            .expect("a shell");
        let text = String::from_utf8_lossy(&said.stderr).into_owned();
        (said.status.code(), text)
    };
    for task in ["1", "2", "3"] {
        assert_eq!(shell("array.sh", task), (Some(0), String::new()));
    }
    assert_eq!(shell("merge.sh", ""), (Some(0), String::new()));
    let alone = [
        "run",
        "my.toml",
        "--set",
        "link.wire.rate=2 Mbit/s",
        "--out",
        "alone",
    ];
    succeeds(here, &alone);
    for file in ["measures.csv", "records.json", "report.html"] {
        let read = |out: &str| fs::read(here.join(out).join(file)).expect("a file");
        assert_eq!(read("alone"), read("the out"), "{file}");
    }
    // An error that cannot be temporary is not retried.
    fs::write(here.join("my.toml"), SPEC.replace("duration", "duratoin")).expect("a spec");
    let (status, said) = shell("array.sh", "1");
    assert_eq!(
        (status, said.contains("begun again")),
        (Some(2), false),
        "{said}"
    );
}

#[test]
fn a_job_array_that_cannot_be_is_refused() {
    let directory = prepared();
    let here = directory.path();
    let refused: [(&[&str], &str); 5] = [
        (&["--array", "11"], "10 runs"),
        (&["--array", "2", "--shard", "1/2"], "--shard"),
        (&["--array", "2", "--set", "los=1"], "loss"),
        (
            &["--array", "2", "--out", "evil\ntouch pwned #"],
            "control characters",
        ),
        (
            &["--array", "2", "--sbatch=--partition=a\ntouch pwned"],
            "control characters",
        ),
    ];
    for (arguments, why) in refused {
        let all = [&["slurm", "my.toml", "--dry-run"], arguments].concat();
        let (status, said) = says(here, &all);
        assert_eq!(status, Some(2), "{said}");
        assert!(said.contains(why), "{said}");
    }
    assert!(!here.join("sweep").exists());
    let left = fs::read_dir(here).expect("a directory").flatten();
    let mut left: Vec<_> = left.map(|it| it.file_name()).collect();
    left.sort_unstable();
    assert_eq!(left, ["mine.csv", "my.toml"], "nothing is made");
    // A folder name with a pattern that sbatch would replace.
    let all = [
        "slurm",
        "my.toml",
        "--dry-run",
        "--array",
        "2",
        "--out",
        "100%a",
    ];
    assert_eq!(says(here, &all).0, Some(0));
    let array = fs::read_to_string(here.join("100%a/slurm/array.sh")).expect("a script");
    assert!(array.contains("/100%%a/slurm/%a.log"), "{array}");
}

#[test]
fn threads_that_share_each_world_write_the_same_files() {
    let directory = prepared();
    let here = directory.path();
    succeeds(here, &["run", "my.toml", "--out", "one"]);
    succeeds(here, &["run", "my.toml", "--threads", "2", "--out", "two"]);
    let (one, two) = (contents(&here.join("one")), contents(&here.join("two")));
    assert_eq!(
        one.keys().collect::<Vec<_>>(),
        two.keys().collect::<Vec<_>>()
    );
    for (name, bytes) in one {
        assert!(bytes == two[&name], "{}", name.display());
    }
    let refuses = |arguments: &[&str], why: &str| {
        let all = [&["run", "my.toml", "--out", "none"], arguments].concat();
        let (status, said) = says(here, &all);
        assert_eq!(status, Some(2), "{said}");
        assert!(said.contains(why), "{said}");
        assert!(!here.join("none").exists(), "nothing is run");
    };
    for count in ["0", "513"] {
        refuses(&["--threads", count], "write a whole number, 1 to 512");
    }
    refuses(
        &["--threads", "2", "--capture", "wire=wire.pcapng"],
        "found --threads 2 with --capture, which numbers the packets of the whole world",
    );
    // Any point may be one that cannot be divided.
    let later = SPEC
        .replace("loss = 0.0\n", "loss = 0.0\ndelay = \"10 ms\"\n")
        .replace("delay = \"10 ms\"\nqueue", "delay = \"$delay\"\nqueue")
        .replace(
            "sweep = [",
            "sweep = [{ parameter = \"delay\", values = [\"10 ms\", \"0 ms\"] }, ",
        );
    fs::write(here.join("my.toml"), later).expect("a spec");
    let why = "found --threads 2: losses at delay 0 ms, loss 0: several threads cannot share this world: \
               the delay between a and b is 0, or its kind states no least delay";
    refuses(&["--threads", "2"], why);
    let array = ["slurm", "my.toml", "--dry-run", "--array", "2"];
    let (status, said) = says(
        here,
        &[&array[..], &["--threads", "2", "--out", "none"]].concat(),
    );
    assert_eq!((status, said.contains(why)), (Some(2), true), "{said}");
    assert!(!here.join("none").exists(), "nothing is made");
}

/// A world of two nodes has at most two parts, for which processors are reserved.
#[test]
fn threads_that_a_world_cannot_use_are_noted() {
    let directory = prepared();
    let here = directory.path();
    let threads = ["--threads", "3", "--jobs", "5", "--out", "three"];
    let array = ["slurm", "my.toml", "--dry-run", "--array", "2"];
    let run = ["run", "my.toml", "--replications", "1"];
    for command in [&array[..], &run] {
        let said = succeeds(here, &[command, &threads].concat());
        assert!(
            said.contains("note: my.toml: found --threads 3; the worlds have at most 2 parts, so that no run has more threads"),
            "{said}"
        );
    }
    let array = fs::read_to_string(here.join("three/slurm/array.sh")).expect("a script");
    assert!(array.contains("--cpus-per-task=10\n"), "{array}");
    let said = succeeds(here, &["run", "my.toml", "--threads", "2", "--out", "two"]);
    assert!(!said.contains("note: my.toml"), "{said}");
}
