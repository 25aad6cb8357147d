//! Collection of the errors of a spec, with their source positions.

use std::collections::BTreeMap;

use anabranch_settings::InvalidValue;

use crate::diagnostic::Diagnostic;
use crate::limits::{MAX_NAME, MAX_PROBLEMS};
use crate::source_span::SourceSpan;
use crate::suggest::nearest;
use crate::tree::{NodeValue, SpecNode};

/// Collects errors, and finds their source positions in the resolved tree.
pub struct Checker<'a> {
    root: &'a SpecNode,
    /// The first errors, up to one more than the limit, because the additional one shows that there
    /// are more.
    problems: Vec<Diagnostic>,
    found: usize,
}

impl<'a> Checker<'a> {
    /// Creates a checker for a spec that was decoded from `root`.
    pub fn new(root: &'a SpecNode) -> Self {
        Self {
            root,
            problems: Vec::new(),
            found: 0,
        }
    }

    /// Creates an error at a path like [`Checker::problem`], for a caller that decides later
    /// whether to record it.
    pub fn located(&self, path: &str, message: impl Into<String>) -> Diagnostic {
        let (place, key) = self.locate(path);
        Diagnostic::new(place, key, message)
    }

    /// The recorded errors.
    pub fn into_problems(self) -> Vec<Diagnostic> {
        self.problems
    }

    /// Records an error at a path of keys and indices, such as `link.2.between.1`. If the file
    /// lacks the path, for example for a default, the position is that of the nearest enclosing
    /// part.
    pub fn problem(&mut self, path: &str, message: impl Into<String>) {
        if self.is_kept() {
            let problem = self.located(path, message);
            self.problems.push(problem);
        }
    }

    /// Counts an error. Returns whether the error should be stored.
    fn is_kept(&mut self) -> bool {
        self.found += 1;
        self.found <= MAX_PROBLEMS + 1
    }

    /// Like [`Checker::problem`], unless the same error is already recorded, because one value may
    /// be checked for both directions.
    pub(super) fn problem_once(&mut self, path: &str, message: impl Into<String>) {
        let problem = self.located(path, message);
        if !self.problems.contains(&problem) && self.is_kept() {
            self.problems.push(problem);
        }
    }

    /// Like [`Checker::problem`], with a list of the allowed values.
    pub fn not_among<'n>(
        &mut self,
        path: &str,
        message: &str,
        found: &str,
        allowed: impl IntoIterator<Item = &'n str>,
    ) {
        if !self.is_kept() {
            return;
        }
        let (place, key) = self.locate(path);
        self.problems
            .push(Diagnostic::new(place, key, message).allowed(found, allowed));
    }

    /// Records an unknown key, with the position of the key.
    pub fn unknown_key<'n>(
        &mut self,
        path: &str,
        key: &str,
        known: impl IntoIterator<Item = &'n str>,
    ) {
        if !self.is_kept() {
            return;
        }
        let (place, found) = self.locate(path);
        let parent = path.rsplit_once('.').map_or("", |(parent, _)| parent);
        let entries = self.node(parent).0.entries();
        let entry = entries.iter().find(|entry| entry.key == key);
        let place = entry.map_or(place, |entry| entry.key_place.clone());
        let problem = Diagnostic::unknown_key(place, found, key);
        self.problems.push(problem.allowed(key, known));
    }

    /// Records that the table at a path lacks the key `key`, unless this is already recorded;
    /// `what` describes the key.
    pub fn missing_key(&mut self, path: &str, key: &str, what: &str) {
        let (place, path) = self.locate(path);
        let problem = Diagnostic::missing_key(place, path, key, what);
        if !self.problems.contains(&problem) && self.is_kept() {
            self.problems.push(problem);
        }
    }

    /// Like [`Checker::missing_key`], for the key that selects the kind of a table, with a list of
    /// the allowed kinds.
    pub fn missing_tag<'n>(
        &mut self,
        path: &str,
        key: &str,
        what: &str,
        allowed: impl IntoIterator<Item = &'n str>,
    ) {
        if self.is_kept() {
            let (place, path) = self.locate(path);
            let problem = Diagnostic::missing_key(place, path, key, what);
            self.problems.push(problem.allowed("", allowed));
        }
    }

    /// Records that a setting rejects a value.
    pub fn invalid_value(&mut self, path: &str, invalid_value: &InvalidValue) {
        let path = match &invalid_value.parameter {
            Some(parameter) => format!("{path}.{parameter}"),
            None => path.to_owned(),
        };
        let message = format!(
            "found {}; expected {}",
            invalid_value.found, invalid_value.allowed
        );
        let found = invalid_value.found.trim_start_matches("the key ");
        let found = found.trim_matches(|c| matches!(c, '"' | '`'));
        let words = invalid_value.words.iter().map(String::as_str);
        // After the description of a number, the words `allowed: off` would be misleading.
        match invalid_value.words.len() == 1 && nearest(found, words.clone()).is_none() {
            true => self.problem(&path, message),
            false => self.not_among(&path, &message, found, words),
        }
    }

    /// Number of errors found.
    pub fn count(&self) -> usize {
        self.found
    }

    /// Whether no error was found.
    pub fn is_content(&self) -> bool {
        self.found == 0
    }

    /// Whether a `--set` argument has set the value at a path, or a value inside it.
    pub(super) fn is_set(&self, path: &str) -> bool {
        fn any(node: &SpecNode) -> bool {
            let inside = || node.entries().iter().any(|entry| any(&entry.node));
            matches!(node.place, SourceSpan::Argument(_))
                || inside()
                || node.items().iter().any(any)
        }
        any(self.node(path).0)
    }

    fn locate(&self, path: &str) -> (SourceSpan, String) {
        let (node, key) = self.node(path);
        (node.place.clone(), key)
    }

    fn node(&self, path: &str) -> (&SpecNode, String) {
        let mut node = self.root;
        let mut key = String::new();
        for segment in path.split('.').filter(|segment| !segment.is_empty()) {
            let next = match &node.value {
                NodeValue::Table(_) => node
                    .get(segment)
                    .map(|next| (next, SpecNode::key_path(&key, segment))),
                NodeValue::Array(items) => segment.parse().ok().and_then(|index: usize| {
                    items
                        .get(index)
                        .map(|item| (item, SpecNode::item_path(&key, index, item)))
                }),
                _ => None,
            };
            match next {
                Some((next, path)) => (node, key) = (next, path),
                None => break,
            }
        }
        (node, key)
    }

    pub(super) fn distinct<'n>(
        &mut self,
        section: &str,
        field: &str,
        names: impl Iterator<Item = &'n str>,
    ) {
        let mut seen = BTreeMap::new();
        for (index, name) in names.enumerate() {
            let path = format!("{section}.{index}.{field}");
            if let Some(first) = seen.insert(name, index) {
                self.problem(
                    &path,
                    format!(
                        "found {name:?} twice in `{section}` (entries {} and {})",
                        first + 1,
                        index + 1
                    ),
                );
            }
            self.name(&path, name);
        }
    }

    pub(super) fn name(&mut self, path: &str, name: &str) {
        let good = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || !name.chars().all(good) || name.starts_with('-') {
            self.problem(
                path,
                format!("found {name:?}; a name is made of letters, digits, `-` and `_`"),
            );
        } else if name.len() > MAX_NAME {
            let message = format!(
                "found a name of {} bytes; it is used as a file name and has at most {MAX_NAME}",
                name.len()
            );
            self.problem(path, message);
        }
    }

    /// Path of the value for one direction, or of the common value if there is no separate one.
    pub(super) fn side(&self, path: &str, side: &str) -> String {
        let own = format!("{path}.{side}");
        let there = self.locate(&own).1.split('.').next_back() == Some(side);
        if there { own } else { path.to_owned() }
    }
}
