//! Tells the program which code it is: a fingerprint of every source that a run depends on, and the commit if known.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Crates whose code decides what a run gives. `DefaultHasher::new` has fixed keys: the fingerprint is the same on every
/// machine that compiles the same code with the same compiler.
const CRATES: &[&str] = &["wire", "transport", "congestion", "sctp", "tcp", "sim"];
/// Files of this crate that do; tables and figures may change without running anew.
const OWN: &[&str] = &[
    "src/agent.rs",
    "src/agent",
    "src/metric.rs",
    "src/metric",
    "src/world.rs",
    "src/world",
];

fn main() {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let mut hasher = DefaultHasher::new();
    let crates = CRATES
        .iter()
        .map(|name| here.join("..").join(name).join("src"));
    for root in crates.chain(OWN.iter().map(|own| here.join(own))) {
        println!("cargo:rerun-if-changed={}", root.display());
        hash_tree(&root, &mut hasher);
    }
    println!("cargo:rustc-env=ANABRANCH_CODE={:016x}", hasher.finish());
    println!("cargo:rerun-if-env-changed=ANABRANCH_COMMIT");
    if let Some(commit) = env::var("ANABRANCH_COMMIT")
        .ok()
        .or_else(|| git_commit(&here))
    {
        println!("cargo:rustc-env=ANABRANCH_BUILT_FROM={commit}");
    }
}

fn hash_tree(path: &Path, hasher: &mut DefaultHasher) {
    if let Ok(entries) = fs::read_dir(path) {
        let mut entries: Vec<PathBuf> = entries
            .filter_map(|entry| entry.ok().map(|entry| entry.path()))
            .collect();
        entries.sort();
        entries
            .iter()
            .filter(|entry| !is_test(entry))
            .for_each(|entry| hash_tree(entry, hasher));
    } else if let Ok(contents) = fs::read(path) {
        path.file_name().hash(hasher);
        contents.hash(hasher);
    }
}

fn is_test(path: &Path) -> bool {
    path.file_stem()
        .is_some_and(|stem| stem == "tests" || stem == "snapshots")
}

fn git_commit(here: &Path) -> Option<String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(here)
        .args(["rev-parse", "--short=12", "HEAD"])
        .output()
        .ok()?;
    let commit = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !commit.is_empty()).then_some(commit)
}
