//! The fingerprint of the code must include all crates of this project that affect a run.

use std::collections::BTreeSet;
use std::process::Command;

use anabranch_lab::store::CODE_OF;
use serde_json::Value;

#[test]
fn every_crate_below_the_engine_is_in_the_fingerprint() {
    let output = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let built_with = |name: &str| -> Vec<String> {
        let package = packages.iter().find(|package| package["name"] == name);
        let all = package.and_then(|package| package["dependencies"].as_array());
        let built = all.into_iter().flatten().filter(|it| it["kind"] != "dev");
        let named = built.filter_map(|it| it["name"].as_str());
        let ours = named.filter(|name| name.starts_with("anabranch-"));
        ours.map(str::to_owned).collect()
    };
    let mut expected = BTreeSet::new();
    let mut open = vec!["anabranch-engine".to_owned()];
    while let Some(name) = open.pop() {
        if expected.insert(name.clone()) {
            open.extend(built_with(&name));
        }
    }
    assert!(expected.len() > 7, "{expected:?}");
    let hashed: BTreeSet<String> = CODE_OF.split(' ').map(str::to_owned).collect();
    assert_eq!(hashed, expected);
}
