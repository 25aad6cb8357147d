//! Checks that no test file is left out. If the manifest of a crate lists its test programs, each
//! test file must be one of these programs or a module of one. A target that is built without its
//! unit tests must not contain any.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Files below `tests/` of one crate that neither a `path` of its manifest nor a `mod` of
/// `tests/all.rs` names.
fn left_out(manifest: &str, all: &str, files: &[&str]) -> Vec<String> {
    let named: BTreeSet<String> = manifest
        .lines()
        .filter_map(|line| line.strip_prefix("path = \"tests/")?.strip_suffix(".rs\""))
        .chain(
            all.lines()
                .filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';')),
        )
        .map(str::to_owned)
        .collect();
    files
        .iter()
        .filter(|file| !named.contains(**file))
        .map(|file| (*file).to_owned())
        .collect()
}

#[test]
fn each_file_of_tests_is_compiled() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let mut merged = 0;
    for entry in fs::read_dir(crates).expect("crates/") {
        let root = entry.expect("readable").path();
        let manifest = fs::read_to_string(root.join("Cargo.toml")).expect("a manifest");
        if !manifest.contains("autotests = false") {
            continue;
        }
        merged += 1;
        let all = fs::read_to_string(root.join("tests/all.rs")).expect("tests/all.rs");
        let files: Vec<String> = fs::read_dir(root.join("tests"))
            .expect("tests/")
            .filter_map(|entry| {
                let name = entry.expect("readable").file_name();
                Some(name.to_str()?.strip_suffix(".rs")?.to_owned())
            })
            .collect();
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        assert_eq!(
            left_out(&manifest, &all, &files),
            [""; 0],
            "files of {} that no test program contains; write a `mod` line in tests/all.rs",
            root.display()
        );
    }
    assert!(merged > 0, "no crate names its test programs itself");
}

#[test]
fn a_file_that_nothing_names_is_found() {
    let manifest = "[[test]]\nname = \"all\"\npath = \"tests/all.rs\"\n\n[[test]]\nname = \"own\"\npath = \"tests/own.rs\"\n";
    let files = ["all", "own", "one", "two"];
    assert_eq!(left_out(manifest, "mod one;\n", &files), ["two"]);
}

/// Source paths of those programs and libraries of the workspace whose unit tests are not built
/// (`test = false`).
fn untested() -> Vec<PathBuf> {
    let output = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()))
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    packages
        .iter()
        .flat_map(|it| it["targets"].as_array().expect("targets"))
        .filter(|it| it["test"] == false)
        .filter(|it| {
            !["example", "custom-build"].contains(&it["kind"][0].as_str().expect("a kind"))
        })
        .map(|it| PathBuf::from(it["src_path"].as_str().expect("a path")))
        .collect()
}

/// Adds the Rust text of the file at `path`; for a `main.rs` or `lib.rs`, the text of all files in
/// its folder.
fn texts(path: &Path, into: &mut Vec<String>) {
    if path.ends_with("main.rs") || path.ends_with("lib.rs") {
        return texts(path.parent().expect("a folder"), into);
    }
    if path.is_dir() {
        for entry in fs::read_dir(path).expect("a folder") {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                texts(&path, into);
            } else if path.extension().is_some_and(|kind| kind == "rs") {
                into.push(fs::read_to_string(path).expect("a file"));
            }
        }
    } else {
        into.push(fs::read_to_string(path).expect("a file"));
    }
}

#[test]
fn targets_built_without_tests_contain_none() {
    let untested = untested();
    assert!(untested.len() > 10, "{untested:?}");
    for path in untested {
        let mut sources = Vec::new();
        texts(&path, &mut sources);
        assert!(
            !sources.is_empty() && !sources.iter().any(|it| it.contains("#[test]")),
            "{} has `test = false` in its manifest, and tests",
            path.display()
        );
    }
}
