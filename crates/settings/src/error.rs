//! What is wrong with a value.

use std::fmt;

use thiserror::Error;

use crate::nearest;

/// Why a value does not fit a [`Kind`](crate::Kind).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// What was found, as it was written.
    pub found: String,
    /// What is allowed, for people: `a time from 1 ms to 60 s, such as "250 ms"`.
    pub allowed: String,
    /// The range alone: `1 ms to 60 s`.
    pub range: String,
    /// The words that are allowed, where any are.
    pub words: Vec<String>,
    /// Where in the value it is: a parameter of a variant, a key of a table, an item of a list: `steps.2.0`.
    pub parameter: Option<String>,
}

impl Misfit {
    /// The same, of the key or item `name` of a larger value.
    #[must_use]
    pub fn within(mut self, name: &str) -> Self {
        self.parameter = Some(match self.parameter {
            Some(inner) => format!("{name}.{inner}"),
            None => name.to_owned(),
        });
        self
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "found {}; expected {}", self.found, self.allowed)?;
        let bare = self.found.trim_matches('"');
        match nearest(bare, self.words.iter().map(String::as_str)) {
            Some(word) if word != bare => write!(f, "; did you mean {word:?}?"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for Misfit {}

/// Why a setting could not be set.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SettingError {
    /// There is no such setting.
    #[error("there is no setting `{found}`{}", hint(nearest.as_deref()))]
    Unknown {
        /// What was asked for.
        found: String,
        /// The setting whose name is nearest, if one is near.
        nearest: Option<String>,
    },
    /// The setting does not take that value.
    #[error("`{setting}`: {misfit}")]
    Value {
        /// The setting.
        setting: &'static str,
        /// What was found, and what it takes.
        misfit: Misfit,
    },
}

fn hint(nearest: Option<&str>) -> String {
    nearest.map_or(String::new(), |name| format!("; did you mean `{name}`?"))
}

impl SettingError {
    /// What is wrong, where the setting is named beside it.
    pub fn what(&self) -> String {
        match self {
            SettingError::Unknown { .. } => self.to_string(),
            SettingError::Value { misfit, .. } => misfit.to_string(),
        }
    }

    /// The setting that is meant; the name as it was found, where there is none of that name.
    pub fn setting(&self) -> &str {
        match self {
            SettingError::Unknown { found, .. } => found,
            SettingError::Value { setting, .. } => setting,
        }
    }
}
