//! Files with elements of satellites: their names in the tree of a spec are replaced by their text.

use anabranch_scenario::diagnostic::Diagnostic;
use anabranch_scenario::tree::{NodeValue, SpecNode};

use crate::files::Files;

/// Key of the file name, and key of the text that replaces it.
const FILE: &str = "file";
const ELEMENTS: &str = "elements";

/// Key of the file name for inter-satellite links, and key of the text that replaces it.
const ISLS_FILE: &str = "isls_file";
const ISLS: &str = "isls";

/// Replaces the file names in this table by the texts, if the table is a propagation model over
/// satellites.
pub(super) fn replace(node: &mut SpecNode, files: &Files, path: &str) -> Result<(), Diagnostic> {
    let is_path = node.get("kind").and_then(SpecNode::text) == Some("satellites");
    if is_path {
        replace_key(node, files, path, [FILE, ELEMENTS])?;
        replace_key(node, files, path, [ISLS_FILE, ISLS])?;
    }
    Ok(())
}

/// Replaces the file names in the shells of constellations by the texts.
pub(super) fn put_in_constellations(
    tree: &mut SpecNode,
    files: &Files,
    problems: &mut Vec<Diagnostic>,
) {
    let Some(NodeValue::Array(all)) = tree.get_mut("constellation").map(|it| &mut it.value) else {
        return;
    };
    for (index, constellation) in all.iter_mut().enumerate() {
        let path = SpecNode::item_path("constellation", index, constellation);
        let shells = constellation.get_mut("shells").map(|it| &mut it.value);
        let Some(NodeValue::Array(shells)) = shells else {
            continue;
        };
        for (index, shell) in shells.iter_mut().enumerate() {
            let path = SpecNode::item_path(&format!("{path}.shells"), index, shell);
            for keys in [[FILE, ELEMENTS], [ISLS_FILE, ISLS]] {
                problems.extend(replace_key(shell, files, &path, keys).err());
            }
        }
    }
}

/// Replaces a file name by the text of the file, under another key.
fn replace_key(
    node: &mut SpecNode,
    files: &Files,
    path: &str,
    [from, to]: [&str; 2],
) -> Result<(), Diagnostic> {
    let Some(name) = node.get(from).cloned() else {
        return Ok(());
    };
    let problem = |message: String| {
        Diagnostic::new(name.place.clone(), SpecNode::key_path(path, from), message)
    };
    let Some(file) = name.text() else {
        let found = name.describe();
        return Err(problem(format!(
            "found {found}; expected the name of a file"
        )));
    };
    if node.get(to).is_some() {
        return Err(problem(format!("found both a file and `{to}`")));
    }
    let text = files
        .text(file)
        .map_err(|error| problem(format!("cannot read {file:?}: {error}")))?;
    if let NodeValue::Table(entries) = &mut node.value {
        for entry in entries.iter_mut().filter(|entry| entry.key == from) {
            to.clone_into(&mut entry.key);
            entry.node.value = NodeValue::Text(text.clone());
        }
    }
    Ok(())
}
