//! Effect of a parameter in combination with the values of others.

/// A parameter that was given, and whether it has an effect in combination with the values of the
/// others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// Name of the parameter, or of a key that all tables of its family have.
    pub key: &'static str,
    /// Reason why the parameter has no effect; `None` if it has one.
    pub idle: Option<String>,
    /// Whether the value, although it has no effect, describes the actual behaviour. Otherwise the
    /// value requests a behaviour that does not occur.
    pub redundant: bool,
}

/// Returns the reason `why` a parameter has no effect, if `condition` is true.
pub fn idle_if(condition: bool, why: impl Into<String>) -> Option<String> {
    condition.then(|| why.into())
}
