//! Error of an invalid question, with the details to correct it.

use std::fmt;

use anabranch_scenario::suggest::nearest;

/// Error in a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidQuestion {
    /// Key in the question; empty if the question as a whole is invalid.
    pub key: String,
    /// Description of the error, with the value found.
    pub message: String,
    /// The allowed values: a description of the range, or all names.
    pub allowed: Vec<String>,
    /// The most similar allowed name, if there is one.
    pub nearest: Option<String>,
}

impl InvalidQuestion {
    /// Error for a value that is not allowed.
    pub fn new(key: &str, found: impl fmt::Display, allowed: &str) -> Self {
        Self {
            key: key.to_owned(),
            message: format!("found {found}"),
            allowed: vec![allowed.to_owned()],
            nearest: None,
        }
    }

    /// Error for a text that cannot be parsed; the message describes the allowed values.
    pub fn unread(key: &str, message: String) -> Self {
        Self {
            key: key.to_owned(),
            message,
            allowed: Vec::new(),
            nearest: None,
        }
    }

    /// Error for an unknown name.
    pub fn unknown(key: &str, name: &str, known: &[&str]) -> Self {
        Self {
            key: key.to_owned(),
            message: format!("found {name:?}, which is unknown"),
            allowed: known.iter().map(|&name| name.to_owned()).collect(),
            nearest: nearest(name, known.iter().copied()).map(str::to_owned),
        }
    }

    /// Error for a question that has no answer; the message suggests another question.
    pub fn whole(message: &str) -> Self {
        Self {
            key: String::new(),
            message: message.to_owned(),
            allowed: Vec::new(),
            nearest: None,
        }
    }
}

impl fmt::Display for InvalidQuestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.key.as_str() {
            "" => write!(f, "{}", self.message)?,
            key => write!(f, "{key}: {}", self.message)?,
        }
        match self.allowed.as_slice() {
            [] => {}
            names => write!(f, "; allowed: {}", names.join(", "))?,
        }
        match &self.nearest {
            Some(nearest) => write!(f, "; did you mean `{nearest}`?"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for InvalidQuestion {}
