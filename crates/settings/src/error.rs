//! Errors of values and settings.

use std::fmt;

use thiserror::Error;

use crate::nearest;
use crate::renamed::{hint, renamed};

/// Reason why a value does not match its [`Kind`](crate::Kind).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidValue {
    /// The rejected value, as it was written.
    pub found: String,
    /// Description of the allowed values: `a time from 1 ms to 60 s, such as "250 ms"`.
    pub allowed: String,
    /// The allowed range without further description, such as `1 ms to 60 s`.
    pub range: String,
    /// Allowed words; empty if there are none.
    pub words: Vec<String>,
    /// Position of the error inside the value: a parameter of a variant, a key of a table, or an
    /// item of a list, as in `steps.2.0`.
    pub parameter: Option<String>,
}

impl InvalidValue {
    /// Converts the error to an error of the table or list that contains the value as key or item
    /// `name`.
    #[must_use]
    pub fn within(mut self, name: &str) -> Self {
        self.parameter = Some(match self.parameter {
            Some(inner) => format!("{name}.{inner}"),
            None => name.to_owned(),
        });
        self
    }
}

impl fmt::Display for InvalidValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "found {}; expected {}", self.found, self.allowed)?;
        let bare = self.found.trim_matches('"');
        match nearest(bare, self.words.iter().map(String::as_str)) {
            Some(word) if renamed(bare, [word]).is_some() => write!(f, "; renamed to `{word}`"),
            Some(word) if word != bare => write!(f, "; did you mean {word:?}?"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for InvalidValue {}

/// Reason why a setting cannot be set.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SettingError {
    /// The name is not that of a setting.
    #[error("there is no setting `{found}`{}", hint_of(found, nearest.as_deref()))]
    Unknown {
        /// The requested name.
        found: String,
        /// Most similar name of a setting, if there is one.
        nearest: Option<String>,
    },
    /// The setting rejects the value.
    #[error("`{setting}`: {invalid_value}")]
    Value {
        /// Name of the setting.
        setting: &'static str,
        /// The value, with the allowed values.
        invalid_value: InvalidValue,
    },
}

fn hint_of(found: &str, nearest: Option<&str>) -> String {
    nearest.map_or(String::new(), |name| format!("; {}", hint(found, name)))
}

impl SettingError {
    /// Message without the name of the setting.
    pub fn what(&self) -> String {
        match self {
            SettingError::Unknown { .. } => self.to_string(),
            SettingError::Value { invalid_value, .. } => invalid_value.to_string(),
        }
    }

    /// Name of the setting, or the unknown name.
    pub fn setting(&self) -> &str {
        match self {
            SettingError::Unknown { found, .. } => found,
            SettingError::Value { setting, .. } => setting,
        }
    }
}
