//! Whether a parameter of a kind has an effect beside the others.

/// A parameter that is set, and whether it has an effect beside the values of the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// The parameter, or a key that the tables of its family share.
    pub key: &'static str,
    /// Why it has none; `None`: it has one.
    pub idle: Option<String>,
    /// Whether it then says what holds without it. Otherwise it cannot do what it says.
    pub redundant: bool,
}

/// Why a parameter has no effect, if the condition holds.
pub fn idle_if(condition: bool, why: impl Into<String>) -> Option<String> {
    condition.then(|| why.into())
}
