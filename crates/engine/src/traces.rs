//! Trace files of links, workloads ([`messages`]) and satellites ([`elements`]). Their contents are
//! inserted into the tree of a spec, so that a plan contains all its inputs.
//!
//! A trace of a link is a file of lines `time,value`, in the order of time, starting at 0. A plain
//! number is in seconds, or, for a rate, in bits per second, unless a header row specifies other
//! units ([`header_row`]). A text with a unit is read as in a spec. An unknown column title is an
//! error. Empty lines and lines that begin with `#` are ignored, unless such a line is the header
//! row. A file in mahimahi's format has one line for each packet that can leave, with the time in
//! milliseconds.

use anabranch_scenario::diagnostic::Diagnostic;
use anabranch_scenario::quantity::Size;
use anabranch_scenario::tree::{NodeValue, SpecNode, TableEntry};
use anabranch_sim::StepFunction;
use anabranch_transport::time::MILLISECOND;

use crate::files::Files;

mod elements;
mod header_row;
mod messages;
mod stations;
mod table;

/// Maximum number of steps of a trace.
const MAX_STEPS: usize = 1_000_000;

/// Keys of a link whose value may be a trace, each with the unit of a plain number. For a queue,
/// the values are attenuations.
const KEYS: &[(&str, &str)] = &[
    ("rate", " bit/s"),
    ("delay", " s"),
    ("loss", ""),
    ("queue", " dB"),
];

/// Default packet size of a mahimahi trace, bytes.
const PACKET: u64 = 1500;

/// Replaces the file names in `tree` by the contents of the files: steps of links, messages of
/// workloads, elements of satellites, and stations.
///
/// # Errors
/// All files that cannot be read or parsed.
pub fn put_in(tree: &mut SpecNode, files: &Files) -> Result<(), Vec<Diagnostic>> {
    let mut problems = Vec::new();
    if let Some(NodeValue::Array(links)) = tree.get_mut("link").map(|links| &mut links.value) {
        for (index, link) in links.iter_mut().enumerate() {
            let path = SpecNode::item_path("link", index, link);
            for (key, unit) in KEYS {
                if let Some(value) = link.get_mut(key) {
                    visit(value, unit, files, &format!("{path}.{key}"), &mut problems);
                }
            }
        }
    }
    elements::put_in_constellations(tree, files, &mut problems);
    stations::put_in(tree, files, &mut problems);
    messages::put_in(tree, files, &mut problems);
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems)
    }
}

fn visit(
    node: &mut SpecNode,
    unit: &'static str,
    files: &Files,
    path: &str,
    problems: &mut Vec<Diagnostic>,
) {
    let replaced = replace(node, unit, files, path);
    if let Err(problem) = replaced.and_then(|()| elements::replace(node, files, path)) {
        problems.push(problem);
        return;
    }
    if let NodeValue::Table(entries) = &mut node.value {
        for entry in entries {
            let path = SpecNode::key_path(path, &entry.key);
            visit(&mut entry.node, unit, files, &path, problems);
        }
    }
}

/// Replaces the file name in this table, if it has one, by the contents of the file.
fn replace(
    node: &mut SpecNode,
    unit: &'static str,
    files: &Files,
    path: &str,
) -> Result<(), Diagnostic> {
    let is_rate = unit == KEYS[0].1;
    let named = ["trace", "opportunities"].into_iter();
    let mut named = named.filter(|key| is_rate || *key == "trace");
    let Some((key, name)) = named.find_map(|key| Some((key, node.get(key)?.clone()))) else {
        return Ok(());
    };
    let place = name.place.clone();
    let problem =
        |message: String| Diagnostic::new(place.clone(), SpecNode::key_path(path, key), message);
    let Some(file) = name.text() else {
        let found = name.describe();
        return Err(problem(format!(
            "found {found}; expected the name of a file"
        )));
    };
    if node.get("steps").is_some() {
        return Err(problem("found both a file and `steps`".to_owned()));
    }
    let text = files
        .text(file)
        .map_err(|error| problem(format!("cannot read {file:?}: {error}")))?;
    let value = |value| SpecNode {
        place: place.clone(),
        value,
    };
    let pair = |(at, is): (String, NodeValue)| {
        let at = value(NodeValue::Text(at));
        value(NodeValue::Array(vec![at, value(is)]))
    };
    let (steps, repeat) = if key == "trace" {
        (lines(&text, unit), None)
    } else {
        let size = match node
            .get("packet")
            .map(|size| size.text().map(str::parse::<Size>))
        {
            None => PACKET,
            Some(Some(Ok(size))) => size.0,
            Some(_) => {
                let message = "`packet` is a size with its unit, such as \"1500 B\"";
                return Err(problem(message.to_owned()));
            }
        };
        let (steps, repeat) = opportunities(&text, size)
            .map_err(|message| problem(format!("{file:?}: {message}")))?;
        (Ok(steps), Some(repeat))
    };
    let steps = steps.map_err(|message| problem(format!("{file:?}: {message}")))?;
    if steps.len() > MAX_STEPS {
        let message = format!("{file:?} has more than {MAX_STEPS} steps");
        return Err(problem(message));
    }
    let steps = value(NodeValue::Array(steps.into_iter().map(pair).collect()));
    let entry = |key: &str, node| TableEntry {
        key: key.to_owned(),
        key_place: place.clone(),
        node,
    };
    if let NodeValue::Table(entries) = &mut node.value {
        entries.retain(|entry| entry.key != key && (key == "trace" || entry.key != "packet"));
        entries.push(entry("steps", steps));
        if let Some(repeat) = repeat
            && !entries.iter().any(|entry| entry.key == "repeat")
        {
            entries.push(entry("repeat", value(NodeValue::Text(repeat))));
        }
    }
    Ok(())
}

/// Parses lines `time,value`. Values without a unit are in `unit`.
fn lines(text: &str, unit: &'static str) -> Result<Vec<(String, NodeValue)>, String> {
    let value = match unit {
        " bit/s" => header_row::RATE,
        " s" => header_row::DELAY,
        " dB" => header_row::ATTENUATION,
        _ => header_row::SHARE,
    };
    let mut steps = Vec::new();
    table::read(
        text,
        &[header_row::TIME, value],
        2,
        "a line is `time,value`",
        |row| {
            let value = match row.plain(1) {
                Some(number) => NodeValue::Float(number),
                None => NodeValue::Text(row.with_unit(1)),
            };
            steps.push((row.with_unit(0), value));
            // Keeps one step more than the limit, so that the check of the limit fails.
            Ok(steps.len() <= MAX_STEPS)
        },
    )?;
    if steps.is_empty() {
        return Err("no line has a time and a value".to_owned());
    }
    Ok(steps)
}

/// Parses a file in mahimahi's format. Returns the steps, and the period after which they repeat.
fn opportunities(text: &str, size: u64) -> Result<(Vec<(String, NodeValue)>, String), String> {
    let mut times = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        let at: Option<u64> = line.parse().ok().filter(|at| *at < 1 << 32);
        let at = at.ok_or_else(|| {
            format!("line {number}: found {line:?}; a line is a whole number of milliseconds")
        })?;
        times.push(at * MILLISECOND);
    }
    let rate = StepFunction::opportunities(times, size as usize)
        .map_err(|_| "its times do not rise, or there are none above 0".to_owned())?;
    let (first, later) = rate.changes();
    let step = |(at, rate): (u64, u64)| {
        let rate = NodeValue::Text(format!("{rate} bit/s"));
        (format!("{at} ns"), rate)
    };
    let all = std::iter::once((0, first)).chain(later.iter().copied());
    let period = rate.period().unwrap_or_default();
    Ok((all.map(step).collect(), format!("{period} ns")))
}

#[cfg(test)]
mod tests;
