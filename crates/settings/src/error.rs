//! Errors of values and of settings.

use std::fmt;

use thiserror::Error;

use crate::nearest;
use crate::renamed::{hint, renamed};

/// The reason why a value does not fit a [`Kind`](crate::Kind).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidValue {
    /// The value as it was written.
    pub found: String,
    /// The allowed values, as text for users: `a time from 1 ms to 60 s, such as "250 ms"`.
    pub allowed: String,
    /// Only the range: `1 ms to 60 s`.
    pub range: String,
    /// The allowed words, if there are any.
    pub words: Vec<String>,
    /// The position of the error in the value, that is, a parameter of a variant, a key of a table,
    /// or an item of a list: `steps.2.0`.
    pub parameter: Option<String>,
}

impl InvalidValue {
    /// The error as one of the key or item `name` of a larger value.
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

/// The reason why a setting could not be set.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SettingError {
    /// The setting does not exist.
    #[error("there is no setting `{found}`{}", hint_of(found, nearest.as_deref()))]
    Unknown {
        /// The requested name.
        found: String,
        /// The most similar name of a setting, if there is one.
        nearest: Option<String>,
    },
    /// The setting does not accept the value.
    #[error("`{setting}`: {invalid_value}")]
    Value {
        /// The setting.
        setting: &'static str,
        /// The value, and the allowed values.
        invalid_value: InvalidValue,
    },
}

fn hint_of(found: &str, nearest: Option<&str>) -> String {
    nearest.map_or(String::new(), |name| format!("; {}", hint(found, name)))
}

impl SettingError {
    /// The message without the name of the setting.
    pub fn what(&self) -> String {
        match self {
            SettingError::Unknown { .. } => self.to_string(),
            SettingError::Value { invalid_value, .. } => invalid_value.to_string(),
        }
    }

    /// The name of the setting, or the unknown name.
    pub fn setting(&self) -> &str {
        match self {
            SettingError::Unknown { found, .. } => found,
            SettingError::Value { setting, .. } => setting,
        }
    }
}
