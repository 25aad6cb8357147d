//! The words of a choice.

/// A word that a setting accepts, and its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The spelling in specs.
    pub name: &'static str,
    /// Description; empty if the setting describes it.
    pub about: &'static str,
}

impl Choice {
    /// A word without a description.
    pub const fn new(name: &'static str) -> Self {
        Self { name, about: "" }
    }
}

/// The word that switches a setting off.
pub const OFF: &[Choice] = &[Choice::new("off")];
