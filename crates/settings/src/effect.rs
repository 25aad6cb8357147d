//! Effect of a parameter in combination with the values of others.

/// A parameter that was set, and whether it has an effect with the present values of the other
/// parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// Name of the parameter, or of a key that the tables of all kinds of a registry share, such as
    /// `allow_reordering`.
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
