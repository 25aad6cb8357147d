//! Writing of a tree as TOML in the usual layout of specs: sections first, and small values on one
//! line.

use std::fmt::Write;

use crate::tree::{NodeValue, SpecNode, TableEntry};

/// Approximate maximum width of a value on one line, characters.
const WIDTH: usize = 100;

/// Comments of a document: one at the top of the file, and others above the n-th table of a
/// section.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Comments {
    pub head: String,
    pub above: Vec<((String, usize), String)>,
}

/// Writes a document as TOML.
pub(crate) fn write(root: &SpecNode, comments: &Comments) -> String {
    let mut text = String::new();
    comment(&mut text, &comments.head);
    if !comments.head.is_empty() {
        text.push('\n');
    }
    let (sections, values): (Vec<&TableEntry>, Vec<&TableEntry>) = root
        .entries()
        .iter()
        .partition(|entry| is_section(&entry.node));
    for entry in values {
        line(&mut text, entry);
    }
    for entry in sections {
        let items = match &entry.node.value {
            NodeValue::Array(items) => items.as_slice(),
            _ => std::slice::from_ref(&entry.node),
        };
        let is_array = matches!(entry.node.value, NodeValue::Array(_));
        for (index, item) in items.iter().enumerate() {
            text.push('\n');
            let here = |((section, at), _): &&((String, usize), String)| {
                *section == entry.key && *at == index
            };
            if let Some((_, above)) = comments.above.iter().find(here) {
                comment(&mut text, above);
            }
            section(&mut text, &key(&entry.key), item, is_array);
        }
    }
    text
}

fn comment(text: &mut String, comment: &str) {
    for line in comment.lines() {
        let _ = writeln!(text, "{}", format!("# {line}").trim_end());
    }
}

/// Whether an entry at the top level is written as a section.
fn is_section(node: &SpecNode) -> bool {
    match &node.value {
        NodeValue::Table(_) => true,
        NodeValue::Array(items) => is_tables(items),
        _ => false,
    }
}

fn is_tables(items: &[SpecNode]) -> bool {
    let is_table = |item: &SpecNode| matches!(item.value, NodeValue::Table(_));
    !items.is_empty() && items.iter().all(is_table)
}

fn section(text: &mut String, path: &str, table: &SpecNode, is_array: bool) {
    let _ = match is_array {
        true => writeln!(text, "[[{path}]]"),
        false => writeln!(text, "[{path}]"),
    };
    let (own, lines): (Vec<&TableEntry>, Vec<&TableEntry>) = table
        .entries()
        .iter()
        .partition(|entry| needs_section(entry));
    for entry in lines {
        line(text, entry);
    }
    for entry in own {
        text.push('\n');
        let path = format!("{path}.{}", key(&entry.key));
        section(text, &path, &entry.node, false);
    }
}

/// Whether a table is too long for one line.
fn needs_section(entry: &TableEntry) -> bool {
    matches!(entry.node.value, NodeValue::Table(_))
        && entry.key.len() + inline(&entry.node).len() > WIDTH
}

fn line(text: &mut String, entry: &TableEntry) {
    let key = key(&entry.key);
    let value = inline(&entry.node);
    match &entry.node.value {
        NodeValue::Array(items) if key.len() + value.len() > WIDTH => {
            let _ = writeln!(text, "{key} = [");
            for item in items {
                let _ = writeln!(text, "    {},", inline(item));
            }
            text.push_str("]\n");
        }
        _ => {
            let _ = writeln!(text, "{key} = {value}");
        }
    }
}

impl SpecNode {
    /// The value as TOML on one line, as it may follow `key =`.
    pub fn to_toml(&self) -> String {
        inline(self)
    }
}

fn inline(node: &SpecNode) -> String {
    match &node.value {
        NodeValue::Text(text) => quoted(text),
        NodeValue::Integer(number) => number.to_string(),
        NodeValue::Float(number) => toml::Value::Float(*number).to_string(),
        NodeValue::Boolean(truth) => truth.to_string(),
        NodeValue::Array(items) => {
            let items: Vec<String> = items.iter().map(inline).collect();
            format!("[{}]", items.join(", "))
        }
        NodeValue::Table(entries) if entries.is_empty() => "{}".to_owned(),
        NodeValue::Table(entries) => {
            let entry =
                |entry: &TableEntry| format!("{} = {}", key(&entry.key), inline(&entry.node));
            let entries: Vec<String> = entries.iter().map(entry).collect();
            format!("{{ {} }}", entries.join(", "))
        }
    }
}

fn key(key: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    match !key.is_empty() && key.chars().all(is_bare) {
        true => key.to_owned(),
        false => quoted(key),
    }
}

/// Text in quotes, on one line.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
