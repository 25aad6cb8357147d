//! No file of tests is left out: where a crate names its test programs itself, each file is one of them or a module of one.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The files below `tests/` of one crate that nothing names: neither a `path` of its manifest nor a `mod` of `tests/all.rs`.
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
