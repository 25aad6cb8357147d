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

/// An error in an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Byte range in the text.
    pub at: Range<usize>,
    /// The error message; empty if the cause was already reported.
    pub message: String,
    /// The unknown word, if `allowed` lists alternatives.
    pub found: String,
    /// The allowed alternatives.
    pub allowed: Vec<String>,
}

impl Fault {
    /// An error with a complete message.
    pub fn new(at: Range<usize>, message: impl Into<String>) -> Self {
        Self {
            at,
            message: message.into(),
            found: String::new(),
            allowed: Vec::new(),
        }
    }

    /// A consequence of an error that was already reported.
    pub fn reported(at: Range<usize>) -> Self {
        Self::new(at, "")
    }

    fn among(mut self, found: &str, allowed: impl IntoIterator<Item = &'static str>) -> Self {
        found.clone_into(&mut self.found);
        self.allowed = allowed.into_iter().map(str::to_owned).collect();
        self
    }
}

/// Returns the value of a parameter; the range is the position of its name.
pub type Lookup<'a> = dyn FnMut(&str, Range<usize>) -> Result<Value, Fault> + 'a;

/// Evaluates an expression.
///
/// # Errors
/// The first error in it.
pub fn evaluate(text: &str, lookup: &mut Lookup<'_>) -> Result<Value, Fault> {
    parser::Parser::new(text, lookup).whole()
}

/// Evaluates an expression without parameters.
///
/// # Errors
/// The first error in it.
pub fn constant(text: &str) -> Result<Value, Fault> {
    evaluate(text, &mut |name, at| {
        let message = format!("found ${name}; no parameter can stand here");
        Err(Fault::new(at, message))
    })
}

/// Whether a text is an expression and not one number with its unit: it contains parentheses, a
/// `*`, or another operator between blanks.
pub fn is_compound(text: &str) -> bool {
    text.contains(['*', '(', ')']) || [" + ", " - ", " / "].iter().any(|op| text.contains(op))
}

/// Whether a text contains a parameter: a `$` before a letter or `_`. A literal dollar is written
/// twice.
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
