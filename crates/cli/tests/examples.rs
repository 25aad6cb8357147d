//! Built-in examples run by their names, without a file.

mod common;

use std::fs;
use std::path::Path;
use std::process::Output;

use common::{command, text};

fn anabranch(directory: &Path, arguments: &[&str]) -> Output {
    command(directory, arguments)
        .output()
        .expect("the command starts")
}

#[test]
fn an_example_needs_no_file_and_a_file_of_its_name_wins() {
    let directory = tempfile::tempdir().expect("a directory");
    let only = ["run", "failover", "--only", "over-time"];
    let ran = anabranch(directory.path(), &only);
    let said = text(&ran.stderr);
    assert_eq!(ran.status.code(), Some(0), "{said}");
    let figure = directory.path().join("failover/figures/over-time.svg");
    assert!(
        fs::read_to_string(figure)
            .expect("a figure")
            .contains("Path.Max.Retrans 2")
    );
    // The results directory has the same name as the example. The name should still select the
    // example.
    let again = anabranch(directory.path(), &only);
    let said = text(&again.stderr);
    assert_eq!(again.status.code(), Some(0), "{said}");
    fs::remove_dir_all(directory.path().join("failover")).expect("the results");
    fs::write(directory.path().join("failover"), "anabranch = 7").expect("a file");
    let own = anabranch(directory.path(), &["run", "failover"]);
    assert_eq!(own.status.code(), Some(2));
    let unknown = anabranch(directory.path(), &["run", "failovr"]);
    let said = text(&unknown.stderr);
    assert_eq!(unknown.status.code(), Some(2), "{said}");
    // Runs every example in the folder by its name.
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    for entry in fs::read_dir(folder).expect("the examples") {
        let path = entry.expect("an entry").path();
        // A folder contains an example of a program, which the command does not list.
        if path.is_dir() {
            continue;
        }
        let name = path.file_stem().expect("a name").to_string_lossy();
        assert!(said.contains(&*name), "{name}: {said}");
    }
}
