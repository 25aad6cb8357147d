//! Files of ground stations: their rows are inserted into the tree of a spec as stations.

use anabranch_orbit::{NamedPlace, places};
use anabranch_scenario::diagnostic::Diagnostic;
use anabranch_scenario::source_span::SourceSpan;
use anabranch_scenario::tree::{NodeValue, SpecNode, TableEntry};

use crate::files::Files;

/// Key of the file name, and key of the stations that replace it.
const FILE: &str = "file";
const STATIONS: &str = "stations";

/// Replaces the file names in grounds by the stations of the files.
pub(super) fn put_in(tree: &mut SpecNode, files: &Files, problems: &mut Vec<Diagnostic>) {
    let Some(NodeValue::Array(all)) = tree.get_mut("ground").map(|it| &mut it.value) else {
        return;
    };
    for (index, ground) in all.iter_mut().enumerate() {
        let path = SpecNode::item_path("ground", index, ground);
        problems.extend(replace(ground, files, &path).err());
    }
}

fn replace(ground: &mut SpecNode, files: &Files, path: &str) -> Result<(), Diagnostic> {
    let Some(name) = ground.get(FILE).cloned() else {
        return Ok(());
    };
    let problem = |message: String| {
        Diagnostic::new(name.place.clone(), SpecNode::key_path(path, FILE), message)
    };
    let Some(file) = name.text() else {
        let found = name.describe();
        return Err(problem(format!(
            "found {found}; expected the name of a file"
        )));
    };
    if ground.get(STATIONS).is_some() {
        return Err(problem("found both a file and `stations`".to_owned()));
    }
    let text = files
        .text(file)
        .map_err(|error| problem(format!("cannot read {file:?}: {error}")))?;
    let stations = places(&text).map_err(|message| problem(format!("{file:?}: {message}")))?;
    let place = name.place.clone();
    let stations: Vec<SpecNode> = stations
        .into_iter()
        .map(|row| station(row, &place))
        .collect();
    if let NodeValue::Table(entries) = &mut ground.value {
        for entry in entries.iter_mut().filter(|entry| entry.key == FILE) {
            STATIONS.clone_into(&mut entry.key);
            entry.node.value = NodeValue::Array(stations.clone());
        }
    }
    Ok(())
}

fn station(row: NamedPlace, place: &SourceSpan) -> SpecNode {
    let node = |value: NodeValue| SpecNode {
        place: place.clone(),
        value,
    };
    let at = node(NodeValue::Text(row.at));
    let name = row.name.map(|name| node(NodeValue::Text(name)));
    let population = row.population.map(|it| node(NodeValue::Float(it)));
    if name.is_none() && population.is_none() {
        return at;
    }
    let keys = [("name", name), ("at", Some(at)), ("population", population)];
    let entries = keys.into_iter().filter_map(|(key, node)| {
        Some(TableEntry {
            key: key.to_owned(),
            key_place: place.clone(),
            node: node?,
        })
    });
    node(NodeValue::Table(entries.collect()))
}
