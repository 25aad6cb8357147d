//! Expressions with units, such as `2 * $rate * $rtt` or `ceil($buffer / 1500 B) * 1 packet`.
//!
//! ```text
//! sum     = product { ("+" | "-") product }
//! product = factor { ("*" | "/") factor }
//! factor  = "-" factor | number [unit] | "$" name | "(" sum ")" | function "(" sum { "," sum } ")"
//! ```
//!
//! Arithmetic is exact, because it uses fractions. Only the final result is rounded
//! ([`DimensionedValue::show`]).

mod parser;
mod ratio;
#[cfg(test)]
mod tests;
mod value;

use std::ops::Range;

pub use ratio::Ratio;
pub use value::{DimensionedValue, Shown};

/// An error in an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionError {
    /// Byte range of the error in the text.
    pub at: Range<usize>,
    /// Error message; empty if the cause was already reported.
    pub message: String,
    /// Unknown word, if `allowed` lists alternatives.
    pub found: String,
    /// Allowed alternatives.
    pub allowed: Vec<String>,
}

impl ExpressionError {
    /// Creates an error with a complete message.
    pub fn new(at: Range<usize>, message: impl Into<String>) -> Self {
        Self {
            at,
            message: message.into(),
            found: String::new(),
            allowed: Vec::new(),
        }
    }

    /// Creates an error that is a consequence of one that was already reported.
    pub fn reported(at: Range<usize>) -> Self {
        Self::new(at, "")
    }

    fn among(mut self, found: &str, allowed: impl IntoIterator<Item = &'static str>) -> Self {
        found.clone_into(&mut self.found);
        self.allowed = allowed.into_iter().map(str::to_owned).collect();
        self
    }
}

/// Function that returns the value of a parameter; the range is the position of its name in the
/// text.
pub type Lookup<'a> =
    dyn FnMut(&str, Range<usize>) -> Result<DimensionedValue, ExpressionError> + 'a;

/// Evaluates an expression.
///
/// # Errors
/// The first error in the expression.
pub fn evaluate(text: &str, lookup: &mut Lookup<'_>) -> Result<DimensionedValue, ExpressionError> {
    parser::Parser::new(text, lookup).whole()
}

/// Evaluates an expression without parameters.
///
/// # Errors
/// The first error in the expression.
pub fn constant(text: &str) -> Result<DimensionedValue, ExpressionError> {
    evaluate(text, &mut |name, at| {
        let message = format!("found ${name}; no parameter can stand here");
        Err(ExpressionError::new(at, message))
    })
}

/// Whether a text is an expression, and not only a number with its unit. It is an expression if it
/// contains parentheses, a `*`, or another operator between blanks.
pub fn is_compound(text: &str) -> bool {
    text.contains(['*', '(', ')']) || [" + ", " - ", " / "].iter().any(|op| text.contains(op))
}

/// Whether a text contains a parameter: a `$` before a letter or `_`. A dollar sign itself is
/// written twice.
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
