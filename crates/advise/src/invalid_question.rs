//! Invalid questions, with enough detail to correct them.

use std::fmt;

use anabranch_scenario::suggest::nearest;

/// Error in a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidQuestion {
    /// Key in the question; empty if the question as a whole is invalid.
    pub key: String,
    /// The value found.
    pub message: String,
    /// The values allowed: a range in words, or all names.
    pub allowed: Vec<String>,
    /// The most similar name, if there is one.
    pub nearest: Option<String>,
}

impl InvalidQuestion {
    /// A value that is not allowed.
    pub fn new(key: &str, found: impl fmt::Display, allowed: &str) -> Self {
        Self {
            key: key.to_owned(),
            message: format!("found {found}"),
            allowed: vec![allowed.to_owned()],
            nearest: None,
        }
    }

    /// A text that cannot be parsed; the message describes the allowed values.
    pub fn unread(key: &str, message: String) -> Self {
        Self {
            key: key.to_owned(),
            message,
            allowed: Vec::new(),
            nearest: None,
        }
    }

    /// An unknown name.
    pub fn unknown(key: &str, name: &str, known: &[&str]) -> Self {
        Self {
            key: key.to_owned(),
            message: format!("found {name:?}, which is unknown"),
            allowed: known.iter().map(|&name| name.to_owned()).collect(),
            nearest: nearest(name, known.iter().copied()).map(str::to_owned),
        }
    }

    /// A question without an answer; the message suggests another question.
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
