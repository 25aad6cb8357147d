//! Values as a spec writes them, and the points of sweeps that are made of them.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The value of a sweep's x, or of a parameter: what the spec says, without interpretation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Value {
    /// A whole number.
    Integer(i64),
    /// A number.
    Float(f64),
    /// A truth value.
    Boolean(bool),
    /// Text, a quantity with a unit among it.
    Text(String),
}

impl Value {
    /// The value as a number, where it is one.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Integer(number) => Some(*number as f64),
            Value::Float(number) => Some(*number),
            Value::Boolean(_) | Value::Text(_) => None,
        }
    }

    /// Whether the two are the same x, whole numbers and fractions alike.
    pub fn is_same(&self, other: &Value) -> bool {
        match (self.as_f64(), other.as_f64()) {
            (Some(left), Some(right)) => left == right,
            _ => self == other,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Integer(number) => number.fmt(f),
            Value::Float(number) => number.fmt(f),
            Value::Boolean(truth) => truth.fmt(f),
            Value::Text(text) => f.write_str(text),
        }
    }
}

/// Where a unit of work stands in an experiment's sweeps: one entry for each sweep, `(x_name, x)`. Empty where the
/// experiment sweeps nothing.
pub type Point = Vec<(String, Value)>;
