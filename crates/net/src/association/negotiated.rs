//! Extensions that both ends of an association support.

use anabranch_sctp::{self as sctp, Negotiated};

use super::Association;

impl Association {
    /// The negotiated extensions; none before the association is established and after it is
    /// removed.
    pub fn negotiated(&self) -> Negotiated {
        let state = self.shared.lock();
        let association = state.endpoint.association(self.id);
        association.map_or_else(Negotiated::default, sctp::Association::negotiated)
    }
}
