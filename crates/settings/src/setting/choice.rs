//! Words of settings that accept a choice of words.

/// A word that a setting accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Spelling of the word in specs.
    pub name: &'static str,
    /// Description of the word; empty if the text of the setting describes it.
    pub about: &'static str,
}

impl Choice {
    /// Creates a word without a description.
    pub const fn new(name: &'static str) -> Self {
        Self { name, about: "" }
    }
}

/// The word `off`, which disables a setting.
pub const OFF: &[Choice] = &[Choice::new("off")];
