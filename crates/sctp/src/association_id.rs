//! Identifier of an association at its endpoint.

use std::fmt;

/// Identifies an association of an endpoint. The identifier is not reused after the association was
/// released.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AssociationId {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

impl fmt::Display for AssociationId {
    /// Prints slot and generation: `3.1` is the second association in the fourth slot.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.slot, self.generation)
    }
}
