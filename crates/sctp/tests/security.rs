//! Test that `SECURITY.md` names only existing tests.

use std::path::PathBuf;

/// Each name in backticks in the last column of a table must be a test of some crate.
#[test]
fn every_test_of_security_md_exists() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let mut sources = String::new();
    let mut folders: Vec<PathBuf> = ["crates", "capi"]
        .map(|it| format!("{root}/{it}").into())
        .into();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") {
                sources += &std::fs::read_to_string(&path).expect("readable");
            }
        }
    }
    let page = std::fs::read_to_string(format!("{root}/SECURITY.md")).expect("the page");
    let mut named = 0;
    let rows = page.lines().filter(|line| line.starts_with("| "));
    for row in rows.filter(|line| !line.contains("---")) {
        let tests = row.trim_matches('|').rsplit(" | ").next().expect("a cell");
        for name in tests.split('`').skip(1).step_by(2) {
            let test = format!("#[test]\nfn {name}(");
            let inner = format!("#[test]\n    fn {name}(");
            let later = format!("#[tokio::test]\n    async fn {name}(");
            assert!(
                [test, inner, later].iter().any(|it| sources.contains(it)),
                "`{name}` is no test: {row}"
            );
            named += 1;
        }
    }
    assert!(named > 40, "{named}");
}
