//! Substitution of parameters: `"$name"` is replaced by the value of the parameter, and an
//! expression (`"2 * $rate * $rtt"`) by its result.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use anabranch_settings::expression::{self, DimensionedValue, ExpressionError, Ratio, Shown};

use crate::diagnostic::Diagnostic;
use crate::limits::{MAX_CHAIN, MAX_DEPTH, MAX_PUT_IN};
use crate::profiles;
use crate::tree::{NodeValue, SpecNode, TableEntry};

/// Name of the section with the parameters.
const SECTION: &str = "parameters";

/// Substitutes each `"$name"` outside `[parameters]` and outside the parameters and sweeps of
/// experiments. `"$$"` is replaced by a dollar sign. Adds the names of the used parameters to
/// `used`.
///
/// # Errors
/// Names without a parameter, parameters that form a cycle, and expressions that cannot be
/// computed.
pub fn substitute(
    root: SpecNode,
    used: &mut BTreeSet<String>,
) -> Result<SpecNode, Vec<Diagnostic>> {
    let mut resolved = root;
    // The section of the parameters itself stays unchanged; values are substituted at each use.
    let parameters = resolved.get(SECTION).cloned();
    let parameters = parameters
        .as_ref()
        .map(SpecNode::entries)
        .unwrap_or_default();
    let mut walk = Walk {
        parameters,
        known: BTreeMap::new(),
        open: 0,
        depth: 0,
        put_in: 0,
        problems: Vec::new(),
    };
    if let NodeValue::Table(entries) = &mut resolved.value {
        for entry in entries.iter_mut().filter(|entry| entry.key != SECTION) {
            if entry.key == "experiment" {
                experiments(&mut entry.node, &mut walk);
            } else if entry.key == "claim" {
                claims(&mut entry.node, &mut walk);
            } else {
                walk.put_in(&mut entry.node, &entry.key);
            }
        }
    }
    used.extend(walk.known.into_keys());
    if walk.problems.is_empty() {
        profiles::put_in(&mut resolved).map_err(|problem| vec![problem])?;
        Ok(resolved)
    } else {
        Err(walk.problems)
    }
}

fn experiments(node: &mut SpecNode, walk: &mut Walk<'_>) {
    let NodeValue::Array(items) = &mut node.value else {
        return;
    };
    for (index, item) in items.iter_mut().enumerate() {
        let path = SpecNode::item_path("experiment", index, item);
        let NodeValue::Table(entries) = &mut item.value else {
            continue;
        };
        for entry in entries
            .iter_mut()
            .filter(|entry| !matches!(entry.key.as_str(), SECTION | "sweep"))
        {
            walk.put_in(&mut entry.node, &SpecNode::key_path(&path, &entry.key));
        }
    }
}

/// Substitutes parameters in claims, except in bounds, because the value of a bound depends on the
/// point.
fn claims(node: &mut SpecNode, walk: &mut Walk<'_>) {
    let NodeValue::Array(items) = &mut node.value else {
        return walk.put_in(node, "claim");
    };
    for (index, item) in items.iter_mut().enumerate() {
        let path = SpecNode::item_path("claim", index, item);
        let NodeValue::Table(entries) = &mut item.value else {
            walk.put_in(item, &path);
            continue;
        };
        for entry in entries {
            let path = SpecNode::key_path(&path, &entry.key);
            match &mut entry.node.value {
                NodeValue::Table(sides) if entry.key == "reference" => {
                    for side in sides {
                        match side.node.text().filter(|_| side.key == "value") {
                            Some(text) => walk.compute_named(text),
                            None => {
                                walk.put_in(&mut side.node, &SpecNode::key_path(&path, &side.key))
                            }
                        }
                    }
                }
                _ => walk.put_in(&mut entry.node, &path),
            }
        }
    }
}

/// State of a parameter during substitution.
enum Known {
    /// The parameter is being computed, so a reference to it is part of a cycle.
    Open,
    /// Value of the parameter, and its size.
    Is(SpecNode, Extent),
    /// The parameter is invalid, which was reported.
    Wrong,
}

/// Size of a value.
#[derive(Clone, Copy)]
struct Extent {
    /// Size in the units of [`MAX_PUT_IN`].
    size: usize,
    /// Nesting depth.
    depth: usize,
}

impl Extent {
    fn of(node: &SpecNode) -> Self {
        let own = 16 + node.text().map_or(0, str::len);
        let within = node.entries().iter().map(|entry| &entry.node);
        let within = within.chain(node.items()).map(Extent::of);
        within.fold(
            Extent {
                size: own,
                depth: 0,
            },
            |all, one| Extent {
                size: all.size + one.size,
                depth: all.depth.max(one.depth + 1),
            },
        )
    }
}

struct Walk<'a> {
    parameters: &'a [TableEntry],
    /// State of each parameter; each parameter is computed only once.
    known: BTreeMap<String, Known>,
    /// Number of parameters that are being computed, each because the one before refers to it.
    open: usize,
    /// Nesting depth of the current value.
    depth: usize,
    /// Total size of the substituted values, in the units of [`MAX_PUT_IN`].
    put_in: usize,
    problems: Vec<Diagnostic>,
}

impl Walk<'_> {
    fn put_in(&mut self, node: &mut SpecNode, path: &str) {
        self.depth += 1;
        self.put_in_value(node, path);
        self.depth -= 1;
    }

    fn put_in_value(&mut self, node: &mut SpecNode, path: &str) {
        match &mut node.value {
            NodeValue::Text(text) if text.contains('$') => {
                let text = text.clone();
                self.put_in_text(node, &text, path);
            }
            NodeValue::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    let path = SpecNode::item_path(path, index, item);
                    self.put_in(item, &path);
                }
            }
            NodeValue::Table(entries) => {
                for entry in entries {
                    self.put_in(&mut entry.node, &SpecNode::key_path(path, &entry.key));
                }
            }
            _ => {}
        }
    }

    fn put_in_text(&mut self, node: &mut SpecNode, text: &str, path: &str) {
        if let Some(name) = self.whole_name(text) {
            match self.parameter(name) {
                Ok(Some(value)) => *node = value,
                Ok(None) => {}
                Err(problem) => self.problems.push(problem.at(node, path)),
            }
        } else if expression::names_parameter(text) {
            self.compute_named(text);
            let result = expression::evaluate(text, &mut |name, at| self.value(name, at));
            let whole = || 0..text.len();
            let shown = result.and_then(|value| {
                let shown = value.show();
                shown.map_err(|message| {
                    ExpressionError::new(whole(), format!("found {text:?}: {message}"))
                })
            });
            match shown {
                Ok(Shown::Whole(number)) => node.value = NodeValue::Integer(number),
                Ok(Shown::Real(number)) => node.value = NodeValue::Float(number),
                Ok(Shown::Text(text)) => node.value = NodeValue::Text(text),
                Err(fault) if fault.message.is_empty() => {}
                Err(fault) => self.problems.push(problem(fault, node, text, path)),
            }
        } else {
            node.value = NodeValue::Text(text.replace("$$", "$"));
        }
    }

    /// Computes the parameters that an expression mentions before the expression itself. A
    /// computation inside nested parentheses would need much more of the stack.
    fn compute_named(&mut self, text: &str) {
        for rest in text.split('$').skip(1) {
            let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_'));
            let name = &rest[..end.unwrap_or(rest.len())];
            let known = self.known.contains_key(name);
            if !known && self.parameters.iter().any(|entry| entry.key == name) {
                // Ignores the error here, because it is reported at the position of the name when
                // the expression is evaluated.
                let _ = self.parameter(name);
            }
        }
    }

    /// Name of the parameter, if the whole text is `"$name"`. Every name of an existing parameter
    /// is accepted, even with characters that expressions do not permit.
    fn whole_name<'t>(&self, text: &'t str) -> Option<&'t str> {
        let name = text.strip_prefix('$')?;
        let is_plain = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        let begins = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
        let known = self.parameters.iter().any(|entry| entry.key == name);
        (known || begins && name.chars().all(is_plain)).then_some(name)
    }

    /// Value of a parameter; `None` if the parameter is invalid, which was reported.
    fn parameter(&mut self, name: &str) -> Result<Option<SpecNode>, Missing> {
        match self.known.get(name) {
            Some(&Known::Is(_, extent)) => {
                self.within_bounds(name, extent)?;
                let Some(Known::Is(node, _)) = self.known.get(name) else {
                    return Ok(None);
                };
                return Ok(Some(node.clone()));
            }
            Some(Known::Wrong) => return Ok(None),
            Some(Known::Open) => {
                return Err(Missing::of(format!(
                    "found \"${name}\", a parameter that depends on itself"
                )));
            }
            None => {}
        }
        let parameters = self.parameters;
        let Some(entry) = parameters.iter().find(|entry| entry.key == name) else {
            let known = parameters.iter().map(|entry| entry.key.clone());
            return Err(Missing {
                message: format!("found \"${name}\", but no parameter has this name"),
                found: Some((name.to_owned(), known.collect())),
            });
        };
        if self.open == MAX_CHAIN {
            return Err(Missing::of(format!(
                "found \"${name}\" behind {MAX_CHAIN} parameters that name each other in a row; no more are followed"
            )));
        }
        self.known.insert(name.to_owned(), Known::Open);
        let before = self.problems.len();
        let mut node = entry.node.clone();
        self.open += 1;
        self.put_in(&mut node, &SpecNode::key_path(SECTION, name));
        self.open -= 1;
        if self.problems.len() > before {
            self.known.insert(name.to_owned(), Known::Wrong);
            return Ok(None);
        }
        let extent = Extent::of(&node);
        let known = Known::Is(node.clone(), extent);
        self.known.insert(name.to_owned(), known);
        self.within_bounds(name, extent).map(|()| Some(node))
    }

    /// Adds a substituted value to the totals, and checks the limits.
    fn within_bounds(&mut self, name: &str, extent: Extent) -> Result<(), Missing> {
        self.put_in = self.put_in.saturating_add(extent.size);
        if self.depth + extent.depth > MAX_DEPTH {
            return Err(Missing::of(format!(
                "found \"${name}\", with which there are more than {MAX_DEPTH} lists and tables within one another"
            )));
        }
        if self.put_in > MAX_PUT_IN {
            return Err(Missing::of(format!(
                "found \"${name}\", with which parameters put in more than {} MiB",
                MAX_PUT_IN >> 20
            )));
        }
        Ok(())
    }

    /// Value of a parameter that an expression mentions at a byte range.
    fn value(&mut self, name: &str, at: Range<usize>) -> Result<DimensionedValue, ExpressionError> {
        let node = match self.parameter(name) {
            Ok(Some(node)) => node,
            Ok(None) => return Err(ExpressionError::reported(at)),
            Err(missing) => {
                let mut fault = ExpressionError::new(at, missing.message);
                (fault.found, fault.allowed) = missing.found.unwrap_or_default();
                return Err(fault);
            }
        };
        let value = match &node.value {
            NodeValue::Integer(number) => {
                Some(DimensionedValue::number(Ratio::whole((*number).into())))
            }
            NodeValue::Float(number) => DimensionedValue::real(*number),
            NodeValue::Text(text) => expression::constant(text).ok(),
            _ => None,
        };
        value.ok_or_else(|| {
            let message = format!(
                "found \"${name}\", which is {}; an expression computes with numbers, times, rates and sizes",
                node.describe()
            );
            ExpressionError::new(at, message)
        })
    }
}

/// Error for a parameter whose value is not available.
struct Missing {
    message: String,
    /// Name that was found, and the names of all parameters.
    found: Option<(String, Vec<String>)>,
}

impl Missing {
    fn of(message: String) -> Self {
        Self {
            message,
            found: None,
        }
    }

    fn at(self, node: &SpecNode, path: &str) -> Diagnostic {
        let problem = Diagnostic::new(node.place.clone(), path, self.message);
        match self.found {
            Some((found, known)) => problem.allowed(&found, known.iter().map(String::as_str)),
            None => problem,
        }
    }
}

/// Converts the error of an expression to a diagnostic at its position in the text.
fn problem(fault: ExpressionError, node: &SpecNode, text: &str, path: &str) -> Diagnostic {
    let place = node.place.within(text, fault.at);
    let problem = Diagnostic::new(place, path, fault.message);
    match fault.allowed.is_empty() {
        true => problem,
        false => problem.allowed(&fault.found, fault.allowed.iter().map(String::as_str)),
    }
}

/// Adds all parameters that a file mentions to `used`. Otherwise a parameter whose only use `--set`
/// has replaced would be reported as unused, although the file is correct.
pub fn mentioned(root: &SpecNode, used: &mut BTreeSet<String>) {
    let parameters = root.get(SECTION).map(SpecNode::entries).unwrap_or_default();
    let names = parameters.iter().map(|entry| &entry.key);
    used.extend(names.filter(|name| mentions(root, name)).cloned());
}

/// Whether a text in the tree mentions the parameter `name`.
pub fn mentions(node: &SpecNode, name: &str) -> bool {
    let goes_on = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
    let in_text = |text: &str| {
        let mut after = text.split('$').skip(1);
        after.any(|rest| {
            rest.strip_prefix(name)
                .is_some_and(|rest| !rest.starts_with(goes_on))
        })
    };
    node.text().is_some_and(in_text)
        || node.items().iter().any(|item| mentions(item, name))
        || node.entries().iter().any(|it| mentions(&it.node, name))
}

/// Errors for all parameters that are not used.
pub fn unused(root: &SpecNode, used: &BTreeSet<String>) -> Vec<Diagnostic> {
    let parameters = root.get(SECTION).map(SpecNode::entries).unwrap_or_default();
    let unused = parameters.iter().filter(|entry| !used.contains(&entry.key));
    let problem = |entry: &TableEntry| {
        let name = &entry.key;
        let message = format!(
            "the parameter `{name}` is used nowhere; refer to it as \"${name}\", or remove it"
        );
        let path = SpecNode::key_path(SECTION, name);
        Diagnostic::new(entry.key_place.clone(), path, message)
    };
    unused.map(problem).collect()
}
