//! Build script that identifies the code of the program: a fingerprint of everything that
//! determines the results of runs, and the commit if it is known.
//!
//! The fingerprint covers the engine, every crate of this workspace that it uses, the format of the
//! series files, and the versions of all other crates (`Cargo.lock`). It does not cover tables,
//! figures and pages, because changing them requires no new runs. In a packaged crate, which lacks
//! the sources of the others, the fingerprint is derived from the version and the packaged commit.

use std::collections::BTreeSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

/// The crate that executes runs; the others are found through its dependencies.
const RUNS: &str = "anabranch-engine";
/// Files of this crate that determine the format of records.
const OWN: &[&str] = &[
    "src/arrow_metadata.rs",
    "src/arrow_metadata/builder.rs",
    "src/columns.rs",
    "src/parquet_schema.rs",
    "src/series.rs",
];

fn main() {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let root = here.join("../..");
    // `DefaultHasher::new` has fixed keys, so equal sources have the same fingerprint on every
    // machine.
    let mut hasher = DefaultHasher::new();
    let packed = !root.join("crates/engine").is_dir();
    let commit = if packed {
        packed_commit(&here)
    } else {
        git_commit(&here)
    };
    let crates = if packed {
        (env::var_os("CARGO_PKG_VERSION"), &commit).hash(&mut hasher);
        BTreeSet::from([(RUNS.to_owned(), PathBuf::new())])
    } else {
        hash_sources(&here, &root, &mut hasher)
    };
    let names: Vec<&str> = crates.iter().map(|(name, _)| name.as_str()).collect();
    println!("cargo:rustc-env=ANABRANCH_CODE={:016x}", hasher.finish());
    println!("cargo:rustc-env=ANABRANCH_CODE_OF={}", names.join(" "));
    embed(&here.join("carried"));
    println!("cargo:rerun-if-env-changed=ANABRANCH_COMMIT");
    if let Some(commit) = env::var("ANABRANCH_COMMIT").ok().or(commit) {
        println!("cargo:rustc-env=ANABRANCH_BUILT_FROM={commit}");
    }
}

/// Writes the lists of the embedded files: `PAPERS`, a folder for each paper, and `EXAMPLES`.
fn embed(carried: &Path) {
    let (papers, examples) = (carried.join("papers"), carried.join("examples"));
    for folder in [&papers, &examples] {
        println!("cargo:rerun-if-changed={}", folder.display());
    }
    let of_papers: Vec<String> = entries(&papers)
        .iter()
        .filter(|path| path.is_dir())
        .map(|path| directory(path, &name(path)))
        .collect();
    let text = format!(
        "/// Papers by name.\npub(crate) static PAPERS: &[EmbeddedFolder] = &[{}];\n\
         /// Specs that are not papers, with their files.\n\
         pub(crate) static EXAMPLES: EmbeddedFolder = {};\n",
        of_papers.join(", "),
        directory(&examples, "")
    );
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("carried.rs");
    fs::write(&out, text).unwrap_or_else(|error| panic!("cannot write {}: {error}", out.display()));
}

/// An `EmbeddedFolder` with all files below a folder, as Rust code.
fn directory(folder: &Path, name: &str) -> String {
    let mut files = Vec::new();
    list(folder, "", &mut files);
    let files: String = files
        .iter()
        .map(|(path, file)| format!("({path:?}, include_bytes!({file:?})), "))
        .collect();
    format!("EmbeddedFolder {{ name: {name:?}, files: &[{files}] }}")
}

fn list(folder: &Path, prefix: &str, files: &mut Vec<(String, PathBuf)>) {
    for path in entries(folder) {
        let name = format!("{prefix}{}", name(&path));
        match path.is_dir() {
            true => list(&path, &format!("{name}/"), files),
            false => files.push((name, path)),
        }
    }
}

fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Entries of a folder in the order of their names.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let paths = || {
        fs::read_dir(folder)?
            .map(|entry| Ok(entry?.path()))
            .collect()
    };
    let paths: io::Result<Vec<PathBuf>> = paths();
    let mut paths =
        paths.unwrap_or_else(|error| panic!("cannot read {}: {error}", folder.display()));
    paths.sort();
    paths
}

/// Hashes everything that determines the results of runs. Returns the names of the crates.
fn hash_sources(
    here: &Path,
    root: &Path,
    hasher: &mut DefaultHasher,
) -> BTreeSet<(String, PathBuf)> {
    let crates = below(root, RUNS);
    let lock = root.join("Cargo.lock");
    let sources = crates
        .iter()
        .flat_map(|(_, folder)| ["src", "Cargo.toml"].map(|part| folder.join(part)));
    let own = OWN.iter().map(|own| here.join(own));
    for path in sources.chain(own).chain([lock]) {
        println!("cargo:rerun-if-changed={}", path.display());
        hash_tree(&path, hasher);
    }
    crates
}

/// Names and directories of a workspace crate and of all workspace crates on which it depends.
fn below(root: &Path, name: &str) -> BTreeSet<(String, PathBuf)> {
    let workspace = fs::read_to_string(root.join("Cargo.toml")).unwrap_or_default();
    let folder = |name: &str| {
        let of = |line: &str| {
            let rest = line.strip_prefix(name)?.trim_start().strip_prefix('=')?;
            Some(root.join(rest.split('"').nth(1)?))
        };
        let found = workspace.lines().find_map(of);
        found.unwrap_or_else(|| panic!("no line of Cargo.toml says where {name} is"))
    };
    let mut found = BTreeSet::new();
    let mut open = vec![name.to_owned()];
    while let Some(name) = open.pop() {
        let folder = folder(&name);
        if found.insert((name, folder.clone())) {
            open.extend(dependencies(&folder));
        }
    }
    found
}

/// Names of the workspace crates on which a crate depends, except for its tests.
fn dependencies(folder: &Path) -> Vec<String> {
    let path = folder.join("Cargo.toml");
    let text = fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
    let mut section = "";
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
        } else if is_built_with(section) && line.starts_with("anabranch-") {
            let name = line.split(['.', ' ', '=']).next().unwrap_or_default();
            found.push(name.to_owned());
        }
    }
    found
}

/// Whether a section of Cargo.toml lists dependencies, possibly only for some platforms
/// (`[target.….dependencies]`).
fn is_built_with(section: &str) -> bool {
    matches!(section, "[dependencies]" | "[build-dependencies]")
        || section.starts_with("[target.") && section.ends_with(".dependencies]")
}

fn hash_tree(path: &Path, hasher: &mut DefaultHasher) {
    if path.is_dir() {
        entries(path)
            .iter()
            .filter(|entry| !is_test(entry))
            .for_each(|entry| hash_tree(entry, hasher));
    } else {
        let contents = fs::read(path)
            .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
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

/// The commit that cargo has recorded in the package; `None` if the package had uncommitted
/// changes.
fn packed_commit(here: &Path) -> Option<String> {
    let notes = fs::read(here.join(".cargo_vcs_info.json")).ok()?;
    let notes: serde_json::Value = serde_json::from_slice(&notes).ok()?;
    let git = notes.get("git")?;
    let clean = git.get("dirty").and_then(serde_json::Value::as_bool) != Some(true);
    let commit = git.get("sha1")?.as_str()?.get(..12)?;
    clean.then(|| commit.to_owned())
}
