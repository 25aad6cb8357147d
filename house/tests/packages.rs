//! Checks the requirements of published packages in addition to their code: licence files, a
//! README, metadata for the registry, and versions of their dependencies.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// The published packages of the workspace, as described by `cargo metadata`.
fn published() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--locked", "--offline", "--no-deps"])
        .args(["--format-version", "1"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "cargo metadata");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let all = metadata["packages"].as_array().expect("packages");
    let is_published = |it: &&Value| it["publish"].as_array().is_none_or(|it| !it.is_empty());
    all.iter().filter(is_published).cloned().collect()
}

/// The parts that a package lacks.
fn lacks(package: &Value) -> Vec<String> {
    let mut lacks = Vec::new();
    let manifest = package["manifest_path"].as_str().expect("a path");
    let folder = Path::new(manifest).parent().expect("a folder");
    for file in ["LICENSE-MIT", "LICENSE-APACHE"] {
        if !folder.join(file).is_file() {
            lacks.push(file.to_owned());
        }
    }
    for key in ["description", "license", "readme", "rust_version"] {
        if package[key].as_str().is_none_or(str::is_empty) {
            lacks.push(key.to_owned());
        }
    }
    for key in ["keywords", "categories"] {
        if package[key].as_array().is_none_or(Vec::is_empty) {
            lacks.push(key.to_owned());
        }
    }
    // Dependencies need a version, because a path has no meaning for users of the package.
    // Dependencies of tests may have only a path, because tests are not packaged.
    let dependencies = package["dependencies"].as_array().expect("dependencies");
    for it in dependencies.iter().filter(|it| it["kind"] != "dev") {
        if it["req"] == "*" {
            lacks.push(format!("a version of {}", it["name"]));
        }
    }
    lacks
}

#[test]
fn published_packages_have_what_a_registry_shows() {
    let all = published();
    assert!(all.len() > 15, "found {} packages", all.len());
    let lacking: Vec<String> = all
        .iter()
        .map(|it| (it["name"].to_string(), lacks(it)))
        .filter(|(_, lacks)| !lacks.is_empty())
        .map(|(name, lacks)| format!("{name}: {}", lacks.join(", ")))
        .collect();
    assert!(lacking.is_empty(), "{lacking:#?}");
}

#[test]
fn a_package_without_licence_files_is_found() {
    let mut package = published().remove(0);
    package["manifest_path"] = Value::from(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
    package["keywords"] = Value::from(Vec::<String>::new());
    let lacks = lacks(&package);
    assert_eq!(lacks, ["LICENSE-MIT", "LICENSE-APACHE", "keywords"]);
}
