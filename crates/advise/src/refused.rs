//! A question that makes no sense, said so that it can be put right.

use std::fmt;

use anabranch_scenario::nearest::nearest;

/// What is wrong with a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What of the question; empty where it is the whole.
    pub key: String,
    /// What was found.
    pub message: String,
    /// What is allowed: a range in words, or all names.
    pub allowed: Vec<String>,
    /// The nearest of the names, if one is near.
    pub nearest: Option<String>,
}

impl Refused {
    /// A value outside of what is allowed.
    pub fn new(key: &str, found: impl fmt::Display, allowed: &str) -> Self {
        Self {
            key: key.to_owned(),
            message: format!("found {found}"),
            allowed: vec![allowed.to_owned()],
            nearest: None,
        }
    }

    /// A text that is no such value; the message says what is allowed.
    pub fn unread(key: &str, message: String) -> Self {
        Self {
            key: key.to_owned(),
            message,
            allowed: Vec::new(),
            nearest: None,
        }
    }

    /// A name that nothing has.
    pub fn unknown(key: &str, name: &str, known: &[&str]) -> Self {
        Self {
            key: key.to_owned(),
            message: format!("found {name:?}, which is unknown"),
            allowed: known.iter().map(|&name| name.to_owned()).collect(),
            nearest: nearest(name, known.iter().copied()).map(str::to_owned),
        }
    }

    /// A question that has no answer, in words that say what to ask instead.
    pub fn whole(message: &str) -> Self {
        Self {
            key: String::new(),
            message: message.to_owned(),
            allowed: Vec::new(),
            nearest: None,
        }
    }
}

impl fmt::Display for Refused {
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

impl std::error::Error for Refused {}
