//! Tree of a TOML file, in which every value has its source position.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::diagnostic::Diagnostic;
use crate::source_span::SourceSpan;

/// A value of a spec with its source position.
#[derive(Clone, Debug, PartialEq)]
pub struct SpecNode {
    /// Source position of the value.
    pub place: SourceSpan,
    /// The value.
    pub value: NodeValue,
}

/// A value of a TOML file.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeValue {
    /// Text.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction.
    Float(f64),
    /// A boolean.
    Boolean(bool),
    /// An array.
    Array(Vec<SpecNode>),
    /// A table, with its entries in the order of the file.
    Table(Vec<TableEntry>),
}

/// A key of a table, with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct TableEntry {
    /// The key.
    pub key: String,
    /// Source position of the key.
    pub key_place: SourceSpan,
    /// Value of the key.
    pub node: SpecNode,
}

/// Keys that may contain the name of a list item, in order of precedence.
pub(crate) const OWN_NAMES: [&str; 2] = ["name", "id"];

impl SpecNode {
    /// Parses a TOML document.
    ///
    /// # Errors
    /// All syntax errors.
    pub fn parse(text: &str) -> Result<SpecNode, Vec<Diagnostic>> {
        let (table, errors) = DeTable::parse_recoverable(text);
        // Only the first error is kept, because the others are usually consequences of it.
        let mut problems: Vec<Diagnostic> = errors
            .iter()
            .take(1)
            .map(|error| {
                let span = error.span().unwrap_or(0..0);
                let message = match (error.message(), text.get(span.clone())) {
                    ("duplicate key", Some(key)) => {
                        format!("found the key `{key}` a second time; a table has each key once")
                    }
                    (message, _) => message.to_owned(),
                };
                Diagnostic::new(SourceSpan::File(span), "", message)
            })
            .collect();
        let place = SourceSpan::File(table.span());
        let root = table_node(place, table.get_ref(), "", &mut problems);
        if problems.is_empty() {
            Ok(root)
        } else {
            Err(problems)
        }
    }

    /// Parses the value of a `--set key=value` argument: as TOML if possible, otherwise as text.
    ///
    /// # Errors
    /// A list or table that contains a value that is not allowed in a spec.
    pub fn parse_argument(key: &str, text: &str, number: usize) -> Result<SpecNode, Diagnostic> {
        let place = SourceSpan::Argument(number);
        let mut problems = Vec::new();
        let value = DeValue::parse(text).ok();
        let node = value.and_then(|value| value_node(&value, key, &mut problems));
        // An invalid TOML value, or a value of a type that specs do not use, may be intended as
        // text. A list or table with such a value is an error.
        let mut node = match (node, problems.into_iter().next()) {
            (Some(_), Some(problem)) => return Err(Diagnostic { place, ..problem }),
            (Some(node), None) => node,
            (None, _) => SpecNode {
                place: place.clone(),
                value: NodeValue::Text(text.to_owned()),
            },
        };
        node.move_to(&place);
        Ok(node)
    }

    /// Sets the source position of this value and of all values inside it.
    fn move_to(&mut self, place: &SourceSpan) {
        self.place = place.clone();
        match &mut self.value {
            NodeValue::Array(items) => items.iter_mut().for_each(|item| item.move_to(place)),
            NodeValue::Table(entries) => entries.iter_mut().for_each(|entry| {
                entry.key_place = place.clone();
                entry.node.move_to(place);
            }),
            _ => {}
        }
    }

    /// Value of a key, if this is a table that has the key.
    pub fn get(&self, key: &str) -> Option<&SpecNode> {
        self.entries()
            .iter()
            .find(|entry| entry.key == key)
            .map(|entry| &entry.node)
    }

    /// Mutable form of [`Self::get`].
    pub fn get_mut(&mut self, key: &str) -> Option<&mut SpecNode> {
        match &mut self.value {
            NodeValue::Table(entries) => entries
                .iter_mut()
                .find(|entry| entry.key == key)
                .map(|entry| &mut entry.node),
            _ => None,
        }
    }

    /// Entries of a table; empty for any other value.
    pub fn entries(&self) -> &[TableEntry] {
        match &self.value {
            NodeValue::Table(entries) => entries,
            _ => &[],
        }
    }

    /// Items of an array; empty for any other value.
    pub fn items(&self) -> &[SpecNode] {
        match &self.value {
            NodeValue::Array(items) => items,
            _ => &[],
        }
    }

    /// The text, if the value is a text.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            NodeValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Name of a table: the value of its key `name` or `id`.
    pub fn own_name(&self) -> Option<&str> {
        OWN_NAMES
            .iter()
            .find_map(|key| self.get(key))
            .and_then(SpecNode::text)
    }

    /// Whether two trees have equal contents; source positions and the order of keys are ignored.
    pub fn says_what(&self, other: &SpecNode) -> bool {
        match (&self.value, &other.value) {
            (NodeValue::Array(one), NodeValue::Array(two)) => {
                one.len() == two.len() && one.iter().zip(two).all(|(a, b)| a.says_what(b))
            }
            (NodeValue::Table(one), NodeValue::Table(two)) => {
                let same = |entry: &TableEntry| {
                    let there = other.get(&entry.key);
                    there.is_some_and(|there| entry.node.says_what(there))
                };
                one.len() == two.len() && one.iter().all(same)
            }
            (one, two) => one == two,
        }
    }

    /// The value as JSON with sorted keys, for hashing and storage.
    pub fn to_json(&self) -> serde_json::Value {
        match &self.value {
            NodeValue::Text(text) => text.as_str().into(),
            NodeValue::Integer(number) => (*number).into(),
            NodeValue::Float(number) => (*number).into(),
            NodeValue::Boolean(truth) => (*truth).into(),
            NodeValue::Array(items) => items.iter().map(SpecNode::to_json).collect(),
            NodeValue::Table(entries) => {
                let mut sorted: Vec<&TableEntry> = entries.iter().collect();
                sorted.sort_by(|a, b| a.key.cmp(&b.key));
                sorted
                    .into_iter()
                    .map(|entry| (entry.key.clone(), entry.node.to_json()))
                    .collect()
            }
        }
    }

    /// Writes the same text as [`Self::to_json`], in pieces.
    pub fn write_json(&self, write: &mut dyn FnMut(&str)) {
        match &self.value {
            NodeValue::Array(items) => {
                write("[");
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        write(",");
                    }
                    item.write_json(write);
                }
                write("]");
            }
            NodeValue::Table(entries) => {
                let mut sorted: Vec<&TableEntry> = entries.iter().collect();
                sorted.sort_by(|a, b| a.key.cmp(&b.key));
                write("{");
                for (index, entry) in sorted.into_iter().enumerate() {
                    if index > 0 {
                        write(",");
                    }
                    write(&serde_json::Value::from(entry.key.as_str()).to_string());
                    write(":");
                    entry.node.write_json(write);
                }
                write("}");
            }
            _ => write(&self.to_json().to_string()),
        }
    }

    /// Description of the value for an error message: `"2 Mbit/s"`, `17`, `a table`.
    pub fn describe(&self) -> String {
        match &self.value {
            NodeValue::Text(text) => format!("{text:?}"),
            NodeValue::Integer(number) => number.to_string(),
            NodeValue::Float(number) => number.to_string(),
            NodeValue::Boolean(truth) => truth.to_string(),
            NodeValue::Array(items) if items.len() == 1 => "a list of 1 value".to_owned(),
            NodeValue::Array(items) => format!("a list of {} values", items.len()),
            NodeValue::Table(_) => "a table".to_owned(),
        }
    }

    /// Path of a list item: `link.satellite` if the item has the name `satellite`, otherwise with
    /// its index, as in `link[2]`.
    pub fn item_path(path: &str, index: usize, item: &SpecNode) -> String {
        match item.own_name() {
            Some(name) if !name.starts_with('$') => format!("{path}.{name}"),
            _ => format!("{path}[{index}]"),
        }
    }

    /// Path of a key.
    pub fn key_path(path: &str, key: &str) -> String {
        if path.is_empty() {
            key.to_owned()
        } else {
            format!("{path}.{key}")
        }
    }
}

fn table_node(
    place: SourceSpan,
    table: &DeTable<'_>,
    path: &str,
    problems: &mut Vec<Diagnostic>,
) -> SpecNode {
    let mut entries: Vec<TableEntry> = Vec::with_capacity(table.len());
    for (key, value) in table.iter() {
        let name = key.get_ref().to_string();
        let path = SpecNode::key_path(path, &name);
        if let Some(node) = value_node(value, &path, problems) {
            entries.push(TableEntry {
                key: name,
                key_place: SourceSpan::File(key.span()),
                node,
            });
        }
    }
    entries.sort_by(|a, b| a.key_place.cmp_position(&b.key_place));
    SpecNode {
        place,
        value: NodeValue::Table(entries),
    }
}

fn value_node(
    value: &Spanned<DeValue<'_>>,
    path: &str,
    problems: &mut Vec<Diagnostic>,
) -> Option<SpecNode> {
    let place = SourceSpan::File(value.span());
    let found = match value.get_ref() {
        DeValue::String(text) => NodeValue::Text(text.to_string()),
        DeValue::Boolean(truth) => NodeValue::Boolean(*truth),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => NodeValue::Integer(number),
            Err(_) => {
                problems.push(Diagnostic::new(
                    place,
                    path,
                    format!("found {}, which is too large", number.as_str()),
                ));
                return None;
            }
        },
        DeValue::Float(number) => match number.as_str().parse::<f64>() {
            Ok(number) if number.is_finite() => NodeValue::Float(number),
            _ => {
                problems.push(Diagnostic::new(
                    place,
                    path,
                    format!("found {}, which is not finite", number.as_str()),
                ));
                return None;
            }
        },
        DeValue::Datetime(_) => {
            let message = "found a date; times in a spec are spans such as \"250 ms\"";
            problems.push(Diagnostic::new(place, path, message.to_owned()));
            return None;
        }
        DeValue::Array(items) => {
            let items = items.iter().enumerate();
            NodeValue::Array(
                items
                    .filter_map(|(i, item)| value_node(item, &format!("{path}[{i}]"), problems))
                    .collect(),
            )
        }
        DeValue::Table(table) => return Some(table_node(place, table, path, problems)),
    };
    Some(SpecNode {
        place,
        value: found,
    })
}
