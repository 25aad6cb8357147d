//! The effect of a parameter in combination with others.

/// A given parameter, and whether it has an effect in combination with the values of the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// The parameter, or a key that is common to the tables of its family.
    pub key: &'static str,
    /// The reason why it has no effect; `None`: it has one.
    pub idle: Option<String>,
    /// The value describes the actual behaviour even though it has no effect. Otherwise the value
    /// cannot be honoured.
    pub redundant: bool,
}

/// The reason `why` a parameter has no effect, if the condition holds.
pub fn idle_if(condition: bool, why: impl Into<String>) -> Option<String> {
    condition.then(|| why.into())
}
