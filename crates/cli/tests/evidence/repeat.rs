//! The command that a report prints for repeating its runs works in the results directory, without
//! the files next to the spec.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::{SWEEP, anabranch, succeeds, text, with};

const REFERENCE: &str = "[reference]\npublished = \"printed.csv\"\n[parameters]\n";
const PRINTED: &str =
    "where,series,x_name,x,metric,value,unit\ngoodput,tcp,rate,1 Mbit/s,goodput,0.81,Mbit/s\n";

/// Runs the command that a report prints, in a shell, in a directory.
fn repeated(results: &Path) -> Output {
    let page = fs::read_to_string(results.join("report.html")).expect("a page");
    let (_, rest) = page
        .split_once("<dt>repeat with</dt><dd>")
        .expect("a command");
    let (line, _) = rest.split_once("</dd>").expect("its end");
    let line = line
        .replace("&quot;", "\"")
        .replace("&amp;", "&")
        .replace("&lt;", "<")
        .replace("&gt;", ">");
    let program = Path::new(env!("CARGO_BIN_EXE_anabranch"));
    let folder = program.parent().expect("a folder");
    let path = std::env::var("PATH").unwrap_or_default();
    Command::new("sh")
        .args(["-c", &line])
        .current_dir(results)
        .env("PATH", format!("{}:{path}", folder.display()))
        .output()
        .expect("a shell")
}

#[test]
fn the_command_of_a_report_makes_the_same_runs() {
    // A paper outside of the catalog, with a file of printed values and a file of losses over time.
    let spec = SWEEP
        .replace("[parameters]\n", REFERENCE)
        .replace(
            "[world]",
            "[paper]\nauthors = \"A\"\nvenue = \"V\"\n[world]",
        )
        .replace(
            "probability = 0.01",
            "probability = { trace = \"loss.csv\" }",
        );
    let here = with("sweep.toml", &spec);
    let here = here.path();
    fs::write(here.join("printed.csv"), PRINTED).expect("a file");
    fs::write(here.join("loss.csv"), "0,0.01\n1,0.02\n").expect("a file");
    for options in [
        &["--quick"] as &[&str],
        &[
            "--seed",
            "7",
            "--replications",
            "2",
            "--only",
            "other",
            "--set",
            "rate=3 Mbit/s",
        ],
    ] {
        let arguments = [&["run", "sweep.toml", "--out", "first"], options].concat();
        succeeds(here, &arguments);
        let first = here.join("first");
        let again = repeated(&first);
        assert!(again.status.success(), "{}", text(&again.stderr));
        let read = |path: &str| fs::read(first.join(path)).expect(path);
        assert!(
            read("measures.csv") == read("sweep/measures.csv"),
            "{options:?}"
        );
        fs::remove_dir_all(&first).expect("it was made");
    }
}

/// Results should be shown even if their spec contains a kind, such as a congestion control, or a
/// key that only another program supports.
#[test]
fn results_of_unknown_kinds_are_shown() {
    let here = with("sweep.toml", SWEEP);
    let here = here.path();
    succeeds(here, &["run", "sweep.toml", "--quick", "--out", "out"]);
    let shown = succeeds(here, &["show", "out"]);
    let path = here.join("out/manifest.json");
    let manifest = fs::read_to_string(&path).expect("a manifest");
    let other = manifest.replace(
        "protocol = \\\"tcp\\\"",
        "protocol = \\\"tcp\\\", congestion = \\\"gentle\\\", of_its_own = 3",
    );
    assert_ne!(manifest, other);
    fs::write(&path, other).expect("a manifest");
    assert_eq!(succeeds(here, &["show", "out"]), shown);
    // Syntax errors are still reported.
    fs::write(&path, manifest.replace("[world]", "[wrold]")).expect("a manifest");
    let refused = anabranch(here, &["show", "out"]);
    assert!(
        text(&refused.stderr).contains("wrold"),
        "{}",
        text(&refused.stderr)
    );
}
