//! The DTLS chunk: identity of the peer, and keys that the user installs.

use anabranch_sctp::dtls::PeerIdentity;
use anabranch_sctp::{DtlsStatistics, KeyAgreement, ProtectionMut};
use anabranch_wire::serial::Tsn;

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

    /// The negotiated key management; `None` if the association does not use the DTLS chunk, or has
    /// ended.
    pub fn key_agreement(&self) -> Option<KeyAgreement> {
        let state = self.shared.lock();
        let association = state.endpoint.association(self.id)?;
        association.protection().agreement().cloned()
    }

    /// Returns true if only protected packets are accepted and sent.
    pub fn is_protected(&self) -> bool {
        let state = self.shared.lock();
        let association = state.endpoint.association(self.id);
        association.is_some_and(|it| it.protection().is_active())
    }

    /// Counters of the DTLS chunk; all are 0 without it.
    pub fn dtls_statistics(&self) -> DtlsStatistics {
        let state = self.shared.lock();
        let association = state.endpoint.association(self.id);
        association
            .map(|it| it.protection().statistics())
            .unwrap_or_default()
    }

    /// Accesses the keys of the DTLS chunk. If the user manages the keys (`key_methods` of the
    /// endpoint's [`sctp`](crate::Config::sctp) is `KeyMethods::external`), the association is
    /// reported as established before there are keys. The user then exchanges messages with the
    /// payload protocol identifier 4242, installs the keys, and requires protection. Until there
    /// are keys to send, all other messages are refused. Returns `None` if the association has
    /// ended.
    pub fn change_protection<T>(&self, change: impl FnOnce(ProtectionMut<'_>) -> T) -> Option<T> {
        let mut state = self.shared.lock();
        let association = state.association(self.id)?;
        let changed = change(association.protection_mut());
        state.wake_driver();
        Some(changed)
    }

    /// Returns true if a message whose first chunk has this TSN arrived in protected packets only
    /// (see `ProtectionMut::covers`).
    pub fn covers(&self, tsn: u32) -> bool {
        let mut state = self.shared.lock();
        let association = state.endpoint.association_mut(self.id);
        association.is_some_and(|it| it.protection_mut().covers(Tsn(tsn)))
    }
}
