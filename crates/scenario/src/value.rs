//! Values as written in a spec, and points of sweeps.

use std::fmt;

use schemars::JsonSchema;
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// Value of an x or of a parameter, as written in the spec.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum SweepValue {
    /// A whole number.
    Integer(i64),
    /// A number with a fraction.
    Float(f64),
    /// A boolean.
    Boolean(bool),
    /// A text, which may be a quantity with its unit.
    Text(String),
}

// Implemented by hand, because the derived code tries one variant after the other and formats an
// error for each mismatch. With the derived code, this takes half of the time for reading a record
// of a run.
impl<'de> Deserialize<'de> for SweepValue {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl Visitor<'_> for AnyValue {
    type Value = SweepValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, a truth value or text")
    }

    fn visit_bool<E: de::Error>(self, truth: bool) -> Result<SweepValue, E> {
        Ok(SweepValue::Boolean(truth))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<SweepValue, E> {
        Ok(SweepValue::Integer(number))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<SweepValue, E> {
        let whole = i64::try_from(number).map(SweepValue::Integer);
        Ok(whole.unwrap_or(SweepValue::Float(number as f64)))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<SweepValue, E> {
        Ok(SweepValue::Float(number))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<SweepValue, E> {
        Ok(SweepValue::Text(text.to_owned()))
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<SweepValue, E> {
        Ok(SweepValue::Text(text))
    }
}

impl SweepValue {
    /// The value as a number, if it is one.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            SweepValue::Integer(number) => Some(*number as f64),
            SweepValue::Float(number) => Some(*number),
            SweepValue::Boolean(_) | SweepValue::Text(_) => None,
        }
    }

    /// Whether two values are the same x. Numbers are compared by value, so 1 equals 1.0.
    pub fn is_same(&self, other: &SweepValue) -> bool {
        match (self.as_f64(), other.as_f64()) {
            (Some(left), Some(right)) => left == right,
            _ => self == other,
        }
    }
}

impl fmt::Display for SweepValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SweepValue::Integer(number) => number.fmt(f),
            SweepValue::Float(number) => number.fmt(f),
            SweepValue::Boolean(truth) => truth.fmt(f),
            SweepValue::Text(text) => f.write_str(text),
        }
    }
}

/// x values of a point: one entry `(x_name, x)` for each sweep of the experiment. The list is empty
/// for an experiment without sweeps.
pub type Point = Vec<(String, SweepValue)>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_they_are_written() {
        let text = r#"[1,-9223372036854775808,18446744073709551615,1.0,2.5e-7,true,"","4 Mbit/s"]"#;
        let values: Vec<SweepValue> = serde_json::from_str(text).expect("values");
        let expected = [
            SweepValue::Integer(1),
            SweepValue::Integer(i64::MIN),
            SweepValue::Float(18_446_744_073_709_551_615.0),
            SweepValue::Float(1.0),
            SweepValue::Float(2.5e-7),
            SweepValue::Boolean(true),
            SweepValue::Text(String::new()),
            SweepValue::Text("4 Mbit/s".to_owned()),
        ];
        assert_eq!(values, expected);
        let written = serde_json::to_string(&values).expect("JSON");
        let again: Vec<SweepValue> = serde_json::from_str(&written).expect("values");
        assert_eq!(again, expected);
        for wrong in ["null", "[]", "{}"] {
            let error = serde_json::from_str::<SweepValue>(wrong).expect_err(wrong);
            let error = error.to_string();
            assert!(error.contains("a number, a truth value or text"), "{error}");
        }
    }
}
