//! Tests that the options do as `--help` promises.

use std::fs;

use crate::{SWEEP, anabranch, assert_same, results, succeeds, text, with};

#[test]
fn the_seed_alone_decides_and_the_jobs_do_not() {
    let directory = with("sweep.toml", SWEEP);
    let here = directory.path();
    succeeds(here, &["run", "sweep.toml", "--jobs", "1", "--out", "one"]);
    succeeds(here, &["run", "sweep.toml", "--jobs", "2", "--out", "two"]);
    succeeds(
        here,
        &["run", "sweep.toml", "--seed", "1", "--out", "again"],
    );
    let one = results(&here.join("one"));
    assert!(
        one.contains_key("series/rates.parquet") && one.contains_key("tables/goodput.csv"),
        "{:?}",
        one.keys()
    );
    assert_same(&one, &results(&here.join("two")));
    assert_same(&one, &results(&here.join("again")));
    succeeds(
        here,
        &["run", "sweep.toml", "--seed", "2", "--out", "other"],
    );
    let other = results(&here.join("other"));
    for name in [
        "series/rates.parquet",
        "tables/goodput.csv",
        "figures/window.svg",
        "manifest.json",
    ] {
        assert!(
            one[name] != other[name],
            "{name} is the same under another seed"
        );
    }
}

#[test]
fn a_paper_is_the_same_twice_with_one_job_and_with_two() {
    let directory = with("unused", "");
    let here = directory.path();
    let part = [
        "reproduce",
        "alamgir2002",
        "--only",
        "fig-9,fig-8",
        "--only",
        "segments",
        "--replications",
        "2",
    ];
    for (out, jobs) in [("one", "1"), ("two", "2")] {
        succeeds(here, &[&part[..], &["--jobs", jobs, "--out", out]].concat());
    }
    let one = results(&here.join("one"));
    assert!(
        one.contains_key("tables/segments.csv") && one.contains_key("figures/fig-9.svg"),
        "{:?}",
        one.keys()
    );
    let asked = |name: &str| {
        let mut parts = name.split('/');
        let made = parts
            .next()
            .is_some_and(|of| of == "tables" || of == "figures");
        let id = parts.next().unwrap_or_default();
        !made
            || ["fig-9", "fig-8", "segments"]
                .iter()
                .any(|asked| id.starts_with(asked))
    };
    let unasked: Vec<_> = one.keys().filter(|name| !asked(name)).collect();
    assert!(unasked.is_empty(), "{unasked:?}");
    assert_same(&one, &results(&here.join("two")));
}

/// Rows of a table in CSV: series, x, replications.
fn rows(text: &str) -> Vec<(String, String, String)> {
    let fields = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<_>>();
    text.lines()
        .skip(1)
        .map(fields)
        .map(|row| (row[0].clone(), row[2].clone(), row[6].clone()))
        .collect()
}

#[test]
fn replications_quick_and_only_choose_what_is_run() {
    let directory = with("sweep.toml", SWEEP);
    let here = directory.path();
    let cases: [(&[&str], &str, &str); 5] = [
        (&[], "13 runs\n", "4"),
        (&["--replications", "3"], "12 runs\n", "3"),
        (&["--quick"], "7 runs\n", "2"),
        (&["--only", "goodput"], "12 runs\n", "4"),
        (&["--only", "rates", "--quick"], "6 runs\n", "2"),
    ];
    for (options, runs, replications) in cases {
        let said = succeeds(
            here,
            &[&["run", "sweep.toml", "--out", "results"], options].concat(),
        );
        assert!(said.starts_with(runs), "{options:?}: {said}");
        let table = fs::read_to_string(here.join("results/tables/goodput.csv")).expect("a table");
        let rows = rows(&table);
        assert_eq!(rows.len(), 6, "{table}");
        assert!(
            rows.iter().all(|row| row.2 == replications),
            "{options:?}: {table}"
        );
    }
    let said = succeeds(
        here,
        &["run", "sweep.toml", "--only", "other", "--out", "other"],
    );
    assert!(said.starts_with("1 run\n"), "{said}");
}

#[test]
fn set_changes_a_parameter_or_a_key() {
    let directory = with("sweep.toml", SWEEP);
    let here = directory.path();
    let goodput = |out: &str, set: &[&str]| -> f64 {
        let mut arguments = vec!["run", "sweep.toml", "--only", "other", "--out", out];
        arguments.extend(set.iter().flat_map(|set| ["--set", set]));
        succeeds(here, &arguments);
        let measures = fs::read_to_string(here.join(out).join("measures.csv")).expect("measures");
        let values = measures
            .lines()
            .filter(|line| line.contains("goodput"))
            .map(|line| line.split(',').nth(6).expect("a value"));
        values
            .map(|value| value.parse::<f64>().expect("a number"))
            .sum()
    };
    let plain = goodput("plain", &[]);
    let slow = goodput("slow", &["rate=100 kbit/s"]);
    let same = goodput("same", &["link.wire.rate=100 kbit/s"]);
    assert!(
        slow < 100e3 && slow > 50e3 && plain > 5.0 * slow,
        "{plain} {slow}"
    );
    assert_eq!(slow, same);
    let lossy = goodput(
        "lossy",
        &[
            "link.wire.loss.forward.probability=0.2",
            "world.duration=10 s",
        ],
    );
    assert!(lossy < plain / 4.0, "{lossy} {plain}");
    let manifest = fs::read_to_string(here.join("lossy/manifest.json")).expect("a manifest");
    assert!(
        manifest.contains("link.wire.loss.forward.probability=0.2"),
        "{manifest}"
    );
}

#[test]
fn show_shows_what_was_run_and_nothing_moves() {
    let directory = with("sweep.toml", SWEEP);
    let here = directory.path();
    let said = succeeds(here, &["run", "sweep.toml", "--quick", "--out", "results"]);
    assert!(
        said.contains("anabranch show results") && said.contains("results/report.html"),
        "{said}"
    );
    let before = results(&here.join("results"));
    let shown = succeeds(here, &["show", "results"]);
    for word in [
        "Goodput",
        "rate 1 Mbit/s",
        "rate 4 Mbit/s",
        "±",
        "Window",
        "cwnd",
    ] {
        assert!(shown.contains(word), "{word:?} is not in\n{shown}");
    }
    assert!(!shown.contains('\u{1b}'), "no colours off a terminal");
    assert_same(&before, &results(&here.join("results")));
}

/// A spec without a table gets a table with all its metrics.
#[test]
fn a_spec_without_tables_shows_its_measures() {
    let spec = &SWEEP[..SWEEP.find("[[table]]").expect("a table")];
    let directory = with("plain.toml", spec);
    succeeds(
        directory.path(),
        &["run", "plain.toml", "--quick", "--out", "results"],
    );
    let shown = succeeds(directory.path(), &["show", "results"]);
    assert!(
        shown.contains("goodput (bit/s), tcp") && shown.contains("rate 2 Mbit/s"),
        "{shown}"
    );
    assert!(directory.path().join("results/tables/rates.csv").exists());
}

/// A flow that ends early is reported. In this spec the peer cannot be reached.
#[test]
fn a_flow_that_failed_is_reported() {
    let spec = SWEEP
        .replace("duration = \"20 s\"", "duration = \"2000 s\"")
        .replace(
            "delay = \"20 ms\"",
            "delay = \"20 ms\"\ndown = [[\"5 s\", \"2000 s\"]]",
        );
    let directory = with("dead.toml", &spec);
    let said = succeeds(
        directory.path(),
        &["run", "dead.toml", "--only", "other", "--out", "results"],
    );
    assert!(
        said.contains("failed: sctp: the peer cannot be reached any more in 1 of 1 runs of other"),
        "{said}"
    );
    let report =
        fs::read_to_string(directory.path().join("results/report.html")).expect("a report");
    assert!(report.contains("sctp: the peer cannot be reached any more"));
}

#[test]
fn help_names_every_option_and_exits_0() {
    let directory = with("unused", "");
    let output = anabranch(directory.path(), &["run", "--help"]);
    let help = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0));
    for option in [
        "--capture",
        "--only",
        "--replications",
        "--seed",
        "--jobs",
        "--quick",
        "--out",
        "--set",
    ] {
        assert!(help.contains(option), "{option} is not in\n{help}");
    }
    assert_eq!(anabranch(directory.path(), &["run"]).status.code(), Some(2));
    assert_eq!(
        anabranch(directory.path(), &["runn", "x.toml"])
            .status
            .code(),
        Some(2)
    );
}
