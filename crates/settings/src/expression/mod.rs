//! Expressions with units: `2 * $rate * $rtt`, `ceil($buffer / 1500 B) * 1 packet`.
//!
//! ```text
//! sum     = product { ("+" | "-") product }
//! product = factor { ("*" | "/") factor }
//! factor  = "-" factor | number [unit] | "$" name | "(" sum ")" | function "(" sum { "," sum } ")"
//! ```
//!
//! Arithmetic is exact, in fractions. A result is rounded once, at the end ([`Value::show`]).

mod parser;
mod ratio;
#[cfg(test)]
mod tests;
mod value;

use std::ops::Range;

pub use ratio::Ratio;
pub use value::{Shown, Value};

/// What is wrong with an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Which bytes of the text.
    pub at: Range<usize>,
    /// What was found, and what is wrong with it; empty where that was said elsewhere.
    pub message: String,
    /// The word that was found, where `allowed` lists others.
    pub found: String,
    /// What is allowed instead.
    pub allowed: Vec<String>,
}

impl Fault {
    /// A fault that says all in its message.
    pub fn new(at: Range<usize>, message: impl Into<String>) -> Self {
        Self {
            at,
            message: message.into(),
            found: String::new(),
            allowed: Vec::new(),
        }
    }

    /// A fault that only follows from one that was told.
    pub fn told(at: Range<usize>) -> Self {
        Self::new(at, "")
    }

    fn among(mut self, found: &str, allowed: impl IntoIterator<Item = &'static str>) -> Self {
        found.clone_into(&mut self.found);
        self.allowed = allowed.into_iter().map(str::to_owned).collect();
        self
    }
}

/// Gives the value of a parameter; the range is where its name stands.
pub type Lookup<'a> = dyn FnMut(&str, Range<usize>) -> Result<Value, Fault> + 'a;

/// Computes an expression.
///
/// # Errors
/// The first thing wrong with it.
pub fn evaluate(text: &str, lookup: &mut Lookup<'_>) -> Result<Value, Fault> {
    parser::Parser::new(text, lookup).whole()
}

/// Computes an expression without parameters.
///
/// # Errors
/// The first thing wrong with it.
pub fn constant(text: &str) -> Result<Value, Fault> {
    evaluate(text, &mut |name, at| {
        let message = format!("found ${name}; no parameter can stand here");
        Err(Fault::new(at, message))
    })
}

/// Whether a text means to be an expression rather than one number with its unit: it has parentheses, a `*`, or another operator
/// between blanks.
pub fn is_compound(text: &str) -> bool {
    text.contains(['*', '(', ')']) || [" + ", " - ", " / "].iter().any(|op| text.contains(op))
}

/// Whether a text names a parameter: a `$` before a letter or `_`. A dollar that stands for itself is written twice.
pub fn names_parameter(text: &str) -> bool {
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            rest = after;
        } else if rest.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            return true;
        }
    }
    false
}
