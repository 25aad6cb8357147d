//! The keys of authenticated chunks (RFC 4895), where both ends have the setting `authentication`.

use anabranch_sctp::{ChunkTypes, KeyError, SharedKeys};

use super::Association;

impl Association {
    /// Whether both ends speak AUTH.
    pub fn is_authenticated(&self) -> bool {
        let mut state = self.shared.lock();
        let association = state.association(self.id);
        association.is_some_and(|it| it.is_authenticated())
    }

    /// The chunks that this side takes only if they are authenticated, and those that the peer does (SCTP_LOCAL_AUTH_CHUNKS,
    /// SCTP_PEER_AUTH_CHUNKS; RFC 6458 §8.2.3, §8.2.4); `None` once the association is forgotten.
    pub fn demanded_chunks(&self) -> Option<(ChunkTypes, ChunkTypes)> {
        let mut state = self.shared.lock();
        let association = state.association(self.id)?;
        Some((
            association.demanded_chunks(),
            association.peer_demanded_chunks(),
        ))
    }

    /// Whether messages can be signed by this key ([`SendOptions::key`](crate::SendOptions::key)).
    pub fn can_sign_by(&self, key: u16) -> bool {
        let mut state = self.shared.lock();
        let association = state.association(self.id);
        association.is_some_and(|it| it.can_sign_by(key))
    }

    /// Changes the keys that are shared with the peer (SCTP_AUTH_KEY, SCTP_AUTH_ACTIVE_KEY, SCTP_AUTH_DEACTIVATE_KEY and
    /// SCTP_AUTH_DELETE_KEY, RFC 6458 §8.1.18, §8.3.3 to §8.3.5). Those that associations begin with are set by `auth_keys` of the
    /// endpoint's [`sctp`](crate::Config::sctp). [`AssociationEvent::PeerAuthKey`](crate::AssociationEvent::PeerAuthKey) tells when
    /// the peer uses another one.
    ///
    /// # Errors
    /// AUTH is not offered, or what `change` gives.
    pub fn change_auth_keys(
        &self,
        change: impl FnOnce(&mut SharedKeys) -> Result<(), KeyError>,
    ) -> Result<(), KeyError> {
        let mut state = self.shared.lock();
        let association = state.association(self.id);
        association.map_or(Err(KeyError::NotNegotiated), |it| {
            it.change_auth_keys(change)
        })
    }
}
