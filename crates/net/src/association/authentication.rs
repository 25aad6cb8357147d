//! Shared keys of authenticated chunks (RFC 4895). Requires the setting `authentication` at both
//! ends.

use anabranch_sctp::{KeyError, SharedKeys};

use super::Association;

impl Association {
    /// Returns true if messages can be authenticated with the key number `key`
    /// ([`SendOptions::key`](crate::SendOptions::key)).
    pub fn has_auth_key(&self, key: u16) -> bool {
        let mut state = self.shared.lock();
        let association = state.association(self.id);
        association.is_some_and(|it| {
            it.negotiated().authentication && it.auth_keys().is_some_and(|it| it.can_sign(key))
        })
    }

    /// The key that authenticates sent packets ([`SharedKeys::active`]). `None`: the association
    /// does not use AUTH, or has ended.
    pub fn active_auth_key(&self) -> Option<u16> {
        let mut state = self.shared.lock();
        let association = state.association(self.id)?;
        let keys = association.auth_keys().map(SharedKeys::active);
        keys.filter(|_| association.negotiated().authentication)
    }

    /// Changes the keys that are shared with the peer (SCTP_AUTH_KEY, SCTP_AUTH_ACTIVE_KEY,
    /// SCTP_AUTH_DEACTIVATE_KEY and SCTP_AUTH_DELETE_KEY, RFC 6458 §8.1.18, §8.3.3 to §8.3.5). The
    /// initial keys are set by `auth_keys` of the endpoint's [`sctp`](crate::Config::sctp).
    /// [`Event::PeerAuthKey`](crate::Event::PeerAuthKey) reports that the peer has switched to
    /// another key.
    ///
    /// # Errors
    /// AUTH was not negotiated, or the protocol rejects `change`.
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
