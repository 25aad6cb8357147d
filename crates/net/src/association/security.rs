//! Protection by the DTLS chunk.

use anabranch_sctp::dtls::PeerIdentity;

use super::Association;

impl Association {
    /// The identity that the peer proved last by its certificate. Decisions about access should be
    /// based on it. [`Event::PeerAuthenticated`](crate::Event::PeerAuthenticated) reports each
    /// proof.
    pub fn peer_identity(&self) -> Option<PeerIdentity> {
        let state = self.shared.lock();
        let association = state.endpoint.association(self.id)?;
        association.protection().peer_identity().cloned()
    }
}
