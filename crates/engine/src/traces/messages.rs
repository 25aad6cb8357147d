//! Trace files of workloads: their messages are inserted into the tree of a spec.
//!
//! A trace of a workload is a file of lines `time,size` or `time,size,stream`, in the order of
//! time. A plain time is in seconds from the start of the flow, and a plain size is in bytes,
//! unless a header row specifies other units, as for links. A text with a unit is read as in a
//! spec. The stream is optional.

use anabranch_scenario::diagnostic::Diagnostic;
use anabranch_scenario::source_span::SourceSpan;
use anabranch_scenario::tree::{NodeValue, SpecNode, TableEntry};

use super::{MAX_STEPS, header_row, table};
use crate::files::Files;

/// Key of the file name of a workload, and key of the messages that replace it.
const FILE: &str = "file";
const MESSAGES: &str = "messages";

/// Replaces the file names in the workloads of the flows in `tree` by the messages of the files.
pub(super) fn put_in(tree: &mut SpecNode, files: &Files, problems: &mut Vec<Diagnostic>) {
    let Some(NodeValue::Array(flows)) = tree.get_mut("flow").map(|flows| &mut flows.value) else {
        return;
    };
    for (index, flow) in flows.iter_mut().enumerate() {
        let path = SpecNode::item_path("flow", index, flow);
        if let Some(workload) = flow.get_mut("workload")
            && let Err(problem) = replace(workload, files, &format!("{path}.workload"))
        {
            problems.push(problem);
        }
    }
}

/// Replaces the file name in this workload, if it is a trace with a file.
fn replace(workload: &mut SpecNode, files: &Files, path: &str) -> Result<(), Diagnostic> {
    let is_trace = workload.get("kind").and_then(SpecNode::text) == Some("trace");
    let Some(name) = workload.get(FILE).filter(|_| is_trace).cloned() else {
        return Ok(());
    };
    let problem = |message: String| {
        Diagnostic::new(name.place.clone(), SpecNode::key_path(path, FILE), message)
    };
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

fn entry(key: &str, value: NodeValue, place: &SourceSpan) -> TableEntry {
    TableEntry {
        key: key.to_owned(),
        key_place: place.clone(),
        node: SpecNode {
            place: place.clone(),
            value,
        },
    }
}

/// Parses lines `time,size[,stream]`.
fn lines(text: &str, place: &SourceSpan) -> Result<Vec<SpecNode>, String> {
    const FORM: &str = "a line is `time,size` or `time,size,stream`";
    let columns = [header_row::TIME, header_row::SIZE, header_row::STREAM];
    let mut messages = Vec::new();
    table::read(text, &columns, 2, FORM, |row| {
        let mut entries = vec![
            entry("at", NodeValue::Text(row.with_unit(0)), place),
            entry("size", NodeValue::Text(row.with_unit(1)), place),
        ];
        if let Some(stream) = row.fields.get(2).filter(|field| !field.is_empty()) {
            let number = stream.parse::<i64>().map_err(|_| {
                let line = row.line;
                format!("line {line}: found the stream {stream:?}; a stream is a whole number")
            })?;
            entries.push(entry("stream", NodeValue::Integer(number), place));
        }
        messages.push(SpecNode {
            place: place.clone(),
            value: NodeValue::Table(entries),
        });
        // Keeps one message more than the limit, so that the check of the limit fails.
        Ok(messages.len() <= MAX_STEPS)
    })?;
    if messages.is_empty() {
        return Err("no line has a time and a size".to_owned());
    }
    Ok(messages)
}
