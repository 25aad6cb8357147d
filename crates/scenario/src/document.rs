//! Document: a spec as written, with its parameters, expressions and sweeps.
//!
//! A [`Document`] is the content of a file, or is built by a program, and keeps names such as
//! `$name`. A [`Spec`] is the document at one point of the sweeps, with all values computed. The
//! round trips `Document -> TOML -> Document` and `Spec -> Document -> Spec` are lossless.
//!
//! ```
//! use anabranch_scenario::document::{Document, SpecTable};
//! use anabranch_scenario::quantity::{Rate, TimeSpan};
//!
//! let document = Document::new("pair")
//!     .table(
//!         "parameters",
//!         SpecTable::new().with("rate", Rate(2_000_000)).with("rtt", TimeSpan(500_000_000)),
//!     )
//!     .table("world", SpecTable::new().with("duration", "100 * $rtt"))
//!     .push("node", SpecTable::new().with("name", "a"))
//!     .push("node", SpecTable::new().with("name", "b"))
//!     .push(
//!         "link",
//!         SpecTable::new()
//!             .with("name", "wire")
//!             .with("between", ["a", "b"])
//!             .with("rate", "$rate")
//!             .with("delay", "$rtt / 2"),
//!     );
//! assert!(document.to_toml().contains("delay = \"$rtt / 2\"\n"));
//! ```

use serde::Serialize;

use crate::diagnostic::Diagnostic;
use crate::encode::{encode, entry, node};
use crate::source_span::SourceSpan;
use crate::spec::Spec;
use crate::sweep::Assignment;
use crate::tree::{NodeValue, SpecNode, TableEntry};
use crate::write::{self, Comments};

/// A spec as written. Two documents are equal if their contents are; source positions and comments
/// are ignored.
#[derive(Clone, Debug)]
pub struct Document {
    root: SpecNode,
    comments: Comments,
    /// Errors of the program that built the document.
    problems: Vec<Diagnostic>,
}

impl PartialEq for Document {
    fn eq(&self, other: &Self) -> bool {
        self.root.says_what(&other.root) && self.problems == other.problems
    }
}

impl Document {
    /// Parses a TOML text.
    ///
    /// # Errors
    /// All syntax errors.
    pub fn parse(text: &str) -> Result<Self, Vec<Diagnostic>> {
        Ok(Self::from(SpecNode::parse(text)?))
    }

    /// Creates a spec that contains only its name.
    pub fn new(name: &str) -> Self {
        let empty = Self::from(node(NodeValue::Table(Vec::new())));
        empty.with("anabranch", 1).with("name", name)
    }

    /// Converts a spec with known values to a document.
    ///
    /// # Errors
    /// The spec contains a number that TOML cannot represent.
    pub fn of(spec: &Spec) -> Result<Self, Diagnostic> {
        let root = encode(spec);
        root.map(Self::from)
            .map_err(|refused| Diagnostic::new(SourceSpan::Program, "", refused.to_string()))
    }

    /// The contents as a tree with source positions.
    pub fn root(&self) -> &SpecNode {
        &self.root
    }

    /// Errors that a program made while it built the document.
    pub fn problems(&self) -> &[Diagnostic] {
        &self.problems
    }

    /// The document as TOML.
    pub fn to_toml(&self) -> String {
        write::write(&self.root, &self.comments)
    }

    /// Sets the value at a path, like `--set`: `title`, `link.wire.rate`.
    #[must_use]
    pub fn with(mut self, path: &str, value: impl Serialize) -> Self {
        let Some(value) = self.encoded(path, &value) else {
            return self;
        };
        let setting = Assignment {
            key: path.to_owned(),
            key_place: SourceSpan::Program,
            node: value,
        };
        if let Err(problem) = setting.put(&mut self.root) {
            self.problems.push(problem);
        }
        self
    }

    /// Adds a section: `[world]`, `[parameters]`.
    #[must_use]
    pub fn table(self, section: &str, table: impl Serialize) -> Self {
        self.with(section, table)
    }

    /// Adds a table to a section that is a list of tables: `[[link]]`.
    #[must_use]
    pub fn push(mut self, section: &str, table: impl Serialize) -> Self {
        let Some(table) = self.encoded(section, &table) else {
            return self;
        };
        let NodeValue::Table(entries) = &mut self.root.value else {
            return self;
        };
        let known = entries.iter().position(|entry| entry.key == section);
        let at = known.unwrap_or_else(|| {
            entries.push(entry(section, node(NodeValue::Array(Vec::new()))));
            entries.len() - 1
        });
        match &mut entries[at].node.value {
            NodeValue::Array(items) => items.push(table),
            _ => {
                let message = format!("`{section}` is no list to add to");
                self.problems
                    .push(Diagnostic::new(SourceSpan::Program, section, message));
            }
        }
        self
    }

    /// Adds a comment above the next item that is added to a section.
    #[must_use]
    pub fn comment(mut self, section: &str, comment: &str) -> Self {
        let items = self.root.get(section).map_or(0, |node| node.items().len());
        let at = (section.to_owned(), items);
        self.comments.above.push((at, comment.to_owned()));
        self
    }

    /// Adds a comment at the top of the file.
    #[must_use]
    pub fn head(mut self, comment: &str) -> Self {
        comment.clone_into(&mut self.comments.head);
        self
    }

    fn encoded(&mut self, path: &str, value: &dyn erased::EncodableValue) -> Option<SpecNode> {
        match value.encoded() {
            Ok(node) => Some(node),
            Err(message) => {
                self.problems
                    .push(Diagnostic::new(SourceSpan::Program, path, message));
                None
            }
        }
    }
}

impl From<SpecNode> for Document {
    fn from(root: SpecNode) -> Self {
        Self {
            root,
            comments: Comments::default(),
            problems: Vec::new(),
        }
    }
}

/// Conversion of values of any type by one function that is not generic.
mod erased {
    use serde::Serialize;

    use crate::encode::encode;
    use crate::tree::SpecNode;

    pub trait EncodableValue {
        fn encoded(&self) -> Result<SpecNode, String>;
    }

    impl<T: Serialize> EncodableValue for T {
        fn encoded(&self) -> Result<SpecNode, String> {
            encode(self).map_err(|refused| refused.to_string())
        }
    }
}

/// A table that a program builds: keys and values in the order of insertion. A value may be
/// anything that a spec can contain: a quantity, a text with names such as `$name`, a type of the
/// grammar, or another table.
#[derive(Clone, Debug, Default)]
pub struct SpecTable {
    entries: Vec<TableEntry>,
    /// Error of the first value that could not be encoded.
    refused: Option<String>,
}

impl SpecTable {
    /// Creates an empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// Converts a value of a type of the grammar to a table, so that it can be changed.
    pub fn of(value: impl Serialize) -> Self {
        let mut table = Self::new();
        match encode(&value) {
            Ok(SpecNode {
                value: NodeValue::Table(entries),
                ..
            }) => table.entries = entries,
            Ok(other) => table.refused = Some(format!("{} is no table", other.describe())),
            Err(refused) => table.refused = Some(refused.to_string()),
        }
        table
    }

    /// Sets a key.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Serialize) -> Self {
        match encode(&value) {
            Ok(value) => match self.entries.iter_mut().find(|entry| entry.key == key) {
                Some(entry) => entry.node = value,
                None => self.entries.push(entry(key, value)),
            },
            Err(refused) => self.refused = Some(format!("`{key}`: {refused}")),
        }
        self
    }
}

impl Serialize for SpecTable {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Some(refused) = &self.refused {
            return Err(serde::ser::Error::custom(refused));
        }
        let entries = self.entries.iter();
        serializer.collect_map(entries.map(|entry| (&entry.key, &entry.node)))
    }
}

impl Serialize for SpecNode {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.value {
            NodeValue::Text(text) => serializer.serialize_str(text),
            NodeValue::Integer(number) => serializer.serialize_i64(*number),
            NodeValue::Float(number) => serializer.serialize_f64(*number),
            NodeValue::Boolean(truth) => serializer.serialize_bool(*truth),
            NodeValue::Array(items) => serializer.collect_seq(items),
            NodeValue::Table(entries) => {
                serializer.collect_map(entries.iter().map(|entry| (&entry.key, &entry.node)))
            }
        }
    }
}
