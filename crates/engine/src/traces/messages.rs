//! Trace files of workloads: their messages are put into a spec's tree in their place, as the steps of links are.
//!
//! A trace is a file of lines `time,size` or `time,size,stream`, in the order of time. A time alone is in seconds from the
//! flow's start, a size alone in bytes; text with its unit is as in a spec. Empty lines and lines that begin with `#` count for
//! nothing, nor does a first line of titles.

use anabranch_scenario::place::Place;
use anabranch_scenario::problem::Problem;
use anabranch_scenario::tree::{Entry, Node, NodeValue};

use super::MAX_STEPS;
use crate::files::Files;

/// The key of a workload's file, and the key of what stands in its place.
const FILE: &str = "file";
const MESSAGES: &str = "messages";

/// Puts the messages of the files that the traces among the flows of `tree` name in their place.
pub(super) fn put_in(tree: &mut Node, files: &Files, problems: &mut Vec<Problem>) {
    let Some(NodeValue::Array(flows)) = tree.get_mut("flow").map(|flows| &mut flows.value) else {
        return;
    };
    for (index, flow) in flows.iter_mut().enumerate() {
        let path = Node::item_path("flow", index, flow);
        if let Some(workload) = flow.get_mut("workload")
            && let Err(problem) = replace(workload, files, &format!("{path}.workload"))
        {
            problems.push(problem);
        }
    }
}

/// Replaces the name of a file in this workload, if it is a trace that has one.
fn replace(workload: &mut Node, files: &Files, path: &str) -> Result<(), Problem> {
    let is_trace = workload.get("kind").and_then(Node::text) == Some("trace");
    let Some(name) = workload.get(FILE).filter(|_| is_trace).cloned() else {
        return Ok(());
    };
    let problem =
        |message: String| Problem::new(name.place.clone(), Node::key_path(path, FILE), message);
    let Some(file) = name.text() else {
        let found = name.describe();
        let message = format!("found {found}; expected the name of a file");
        return Err(problem(message));
    };
    if workload.get(MESSAGES).is_some() {
        return Err(problem(format!("found both a file and `{MESSAGES}`")));
    }
    let text = files
        .text(file)
        .map_err(|error| problem(format!("cannot read {file:?}: {error}")))?;
    let messages =
        lines(&text, &name.place).map_err(|message| problem(format!("{file:?}: {message}")))?;
    if messages.len() > MAX_STEPS {
        let message = format!("{file:?} has more than {MAX_STEPS} messages");
        return Err(problem(message));
    }
    if let NodeValue::Table(entries) = &mut workload.value {
        entries.retain(|entry| entry.key != FILE);
        entries.push(entry(MESSAGES, NodeValue::Array(messages), &name.place));
    }
    Ok(())
}

fn entry(key: &str, value: NodeValue, place: &Place) -> Entry {
    Entry {
        key: key.to_owned(),
        key_place: place.clone(),
        node: Node {
            place: place.clone(),
            value,
        },
    }
}

/// The messages of lines `time,size[,stream]`.
fn lines(text: &str, place: &Place) -> Result<Vec<Node>, String> {
    let mut messages = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = || {
            format!("line {number}: found {line:?}; a line is `time,size` or `time,size,stream`")
        };
        let fields: Vec<&str> = line
            .split(',')
            .map(|field| field.trim().trim_matches('"'))
            .collect();
        let is_number = |text: &&str| text.starts_with(|c: char| c.is_ascii_digit() || c == '.');
        let (&[at, size], stream) = match fields.len() {
            2 | 3 => (fields.first_chunk::<2>().ok_or_else(wrong)?, fields.get(2)),
            _ => return Err(wrong()),
        };
        if messages.is_empty() && !fields.iter().any(&is_number) {
            continue;
        }
        if !fields.iter().all(is_number) {
            return Err(wrong());
        }
        let with = |text: &str, unit: &str| match text.parse::<f64>() {
            Ok(_) => NodeValue::Text(format!("{text}{unit}")),
            Err(_) => NodeValue::Text(text.to_owned()),
        };
        let mut entries = vec![
            entry("at", with(at, " s"), place),
            entry("size", with(size, " B"), place),
        ];
        if let Some(stream) = stream {
            let stream = stream.parse::<i64>().map_err(|_| wrong())?;
            entries.push(entry("stream", NodeValue::Integer(stream), place));
        }
        messages.push(Node {
            place: place.clone(),
            value: NodeValue::Table(entries),
        });
        // What the file has beyond that is not kept, and is refused.
        if messages.len() > MAX_STEPS {
            break;
        }
    }
    if messages.is_empty() {
        return Err("no line has a time and a size".to_owned());
    }
    Ok(messages)
}
