//! Identity of a peer under the DTLS chunk.

use anabranch_sctp::dtls::PeerIdentity;

use super::Association;

impl Association {
    /// The identity in the certificate by which the peer last authenticated. Access control should
    /// use this identity. [`Event::PeerAuthenticated`](crate::Event::PeerAuthenticated) reports
    /// each proof.
    pub fn peer_identity(&self) -> Option<PeerIdentity> {
        let state = self.shared.lock();
        let association = state.endpoint.association(self.id)?;
        association.protection().peer_identity().cloned()
    }
}
