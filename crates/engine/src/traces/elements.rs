//! Files of elements of satellites: their text is put into a spec's tree in the place of their
//! names.

use anabranch_scenario::problem::Problem;
use anabranch_scenario::tree::{Node, NodeValue};

use crate::files::Files;

/// The key of a file, and the key of its text, which replaces it.
const FILE: &str = "file";
const ELEMENTS: &str = "elements";

/// Replaces the name of a file in this table, if it is of satellites and has one.
pub(super) fn replace(node: &mut Node, files: &Files, path: &str) -> Result<(), Problem> {
    let is_path = node.get("kind").and_then(Node::text) == Some("satellites");
    let Some(name) = node.get(FILE).filter(|_| is_path).cloned() else {
        return Ok(());
    };
    let problem =
        |message: String| Problem::new(name.place.clone(), Node::key_path(path, FILE), message);
    let Some(file) = name.text() else {
        let found = name.describe();
        return Err(problem(format!(
            "found {found}; expected the name of a file"
        )));
    };
    if node.get(ELEMENTS).is_some() {
        return Err(problem(format!("found both a file and `{ELEMENTS}`")));
    }
    let text = files
        .text(file)
        .map_err(|error| problem(format!("cannot read {file:?}: {error}")))?;
    if let NodeValue::Table(entries) = &mut node.value {
        for entry in entries.iter_mut().filter(|entry| entry.key == FILE) {
            ELEMENTS.clone_into(&mut entry.key);
            entry.node.value = NodeValue::Text(text.clone());
        }
    }
    Ok(())
}
