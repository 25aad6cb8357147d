//! Protection of an association by the DTLS chunk: the interface for its user, and for a key
//! management outside of this crate (draft-ietf-tsvwg-sctp-dtls-chunk-04 §7).

use anabranch_dtls::{InstallError, KeyId, KeyMaterial, PeerIdentity, ReplayWindow, Role};
use anabranch_transport::Nanos;
use anabranch_wire::serial::Tsn;
use bytes::Bytes;

use super::Association;
use crate::dtls_chunk::{DtlsChunk, DtlsStatistics, KeyAgreement, Phase, RestartKeys};
use crate::event::Event;
use crate::rx::Receiver;
use crate::state::State;

/// State of the protection of an association by the DTLS chunk: see [`Association::protection`].
#[derive(Clone, Copy, Debug)]
pub struct Protection<'a> {
    dtls: Option<&'a DtlsChunk>,
}

impl<'a> Protection<'a> {
    /// Whether all packets that are accepted and sent are protected, except INIT and INIT ACK.
    pub fn is_active(self) -> bool {
        self.dtls.is_some_and(DtlsChunk::requires_protection)
    }

    /// DTLS Key Management Parameters that this end and the peer have sent, with header and without
    /// padding; `None` if the association does not use the DTLS chunk.
    pub fn parameters(self) -> Option<[&'a Bytes; 2]> {
        let agreement = self.dtls?.agreement()?;
        let [client, server] = [&agreement.client_parameter, &agreement.server_parameter];
        Some(match agreement.role {
            Role::Client => [client, server],
            Role::Server => [server, client],
        })
    }

    /// Size of the replay windows of later keys, in packets (draft-ietf-tsvwg-sctp-dtls-chunk-04
    /// §7.13); `None` if the association does not use the DTLS chunk.
    pub fn replay_window(self) -> Option<usize> {
        Some(self.dtls?.contexts.window())
    }

    /// Whether there are keys that protect packets of this end.
    pub fn has_send_keys(self) -> bool {
        self.dtls.is_some_and(|it| it.contexts.seals())
    }

    /// The negotiated key management; `None` if the association does not use the DTLS chunk.
    pub fn agreement(self) -> Option<&'a KeyAgreement> {
        self.dtls?.agreement()
    }

    /// Identity that the peer proved last, if the key management uses certificates.
    /// [`Event::PeerAuthenticated`] reports each proof.
    pub fn peer_identity(self) -> Option<&'a PeerIdentity> {
        self.dtls?.identity.as_ref()
    }

    /// Keys with which this end can restart the association later; `None` until such keys are
    /// negotiated. [`Event::RestartKeys`] reports new keys.
    pub fn restart_keys(self) -> Option<RestartKeys> {
        self.dtls?.restart_keys()
    }

    /// Counters of the DTLS chunk.
    pub fn statistics(self) -> DtlsStatistics {
        self.dtls.map(DtlsChunk::statistics).unwrap_or_default()
    }
}

/// Keys of an association that is protected by the DTLS chunk: see [`Association::protection_mut`].
///
/// A key management outside of this crate ([`Event::KeysRequired`]) installs keys in both
/// directions, and then calls [`require`](Self::require). The key managements of
/// [`Security`](crate::Security) do this themselves.
#[derive(Debug)]
pub struct ProtectionMut<'a> {
    association: &'a mut Association,
}

impl ProtectionMut<'_> {
    /// State of the protection.
    pub fn protection(&self) -> Protection<'_> {
        self.association.protection()
    }

    /// Installs keys for packets that this end sends, and uses the keys from now on. Restart keys
    /// are only stored (draft-ietf-tsvwg-sctp-dtls-chunk-04 §7.4).
    ///
    /// # Errors
    /// The epoch is neither the next epoch nor in use, restart keys are installed before any other
    /// keys, or the DTLS chunk is not used or is still being negotiated.
    pub fn install_send_keys(&mut self, id: KeyId, keys: &KeyMaterial) -> Result<(), InstallError> {
        self.negotiated()?.install_sealing(id, keys)
    }

    /// Installs keys for packets of the peer (draft-ietf-tsvwg-sctp-dtls-chunk-04 §7.5). Keys of
    /// earlier epochs stay until [`remove_keys`](Self::remove_keys).
    ///
    /// # Errors
    /// The epoch is neither the next epoch nor in use, or the DTLS chunk is not used or is still
    /// being negotiated.
    pub fn install_receive_keys(
        &mut self,
        id: KeyId,
        keys: &KeyMaterial,
    ) -> Result<(), InstallError> {
        let highest = self.association.rx.as_deref().map(Receiver::highest_tsn);
        let dtls = self.negotiated()?;
        dtls.install_opening(id, keys)?;
        if !id.restart {
            dtls.end_clear_data(highest);
        }
        Ok(())
    }

    /// Whether a message, whose first chunk has the TSN `first`, arrived in protected packets only
    /// (draft-ietf-tsvwg-sctp-dtls-chunk-04 §8.2). False for a message that was received before
    /// the first keys, and for one that has a lower TSN than another one that was.
    pub fn covers(&mut self, first: Tsn) -> bool {
        let association = &mut *self.association;
        let cumulative = association.rx.as_deref().map(Receiver::cumulative_tsn);
        let dtls = association.dtls.as_deref_mut();
        dtls.is_some_and(|it| it.covers(first, cumulative.unwrap_or(first)))
    }

    /// Sets the size of the replay windows of keys that are installed from now on, in packets, from
    /// [`ReplayWindow::MIN_SIZE`] to [`ReplayWindow::MAX_SIZE`]. Returns `false`, without effect,
    /// for another size, or if the association does not use the DTLS chunk.
    pub fn set_replay_window(&mut self, packets: usize) -> bool {
        let is_valid = (ReplayWindow::MIN_SIZE..=ReplayWindow::MAX_SIZE).contains(&packets);
        let dtls = self.association.dtls.as_deref_mut();
        match dtls.filter(|_| is_valid) {
            Some(dtls) => {
                dtls.contexts.set_window(packets);
                true
            }
            None => false,
        }
    }

    /// The DTLS chunk of an established association, because no keys may be set in COOKIE-WAIT and
    /// COOKIE-ECHOED (draft-ietf-tsvwg-sctp-dtls-chunk-04 §8.4).
    fn negotiated(&mut self) -> Result<&mut DtlsChunk, InstallError> {
        let closed = self.association.is_closed();
        let dtls = self.association.dtls.as_deref_mut();
        dtls.filter(|it| !closed && it.phase != Phase::Offered)
            .ok_or(InstallError::NotUsed)
    }

    /// Removes keys for packets of the peer (draft-ietf-tsvwg-sctp-dtls-chunk-04 §7.7). Returns
    /// whether such keys were installed.
    pub fn remove_keys(&mut self, id: KeyId) -> bool {
        let dtls = self.association.dtls.as_mut();
        dtls.is_some_and(|it| it.remove(id))
    }

    /// Discards all packets that are not protected from now on, except INIT and INIT ACK
    /// (draft-ietf-tsvwg-sctp-dtls-chunk-04 §7.9). [`Event::Established`] follows. Cannot be
    /// undone. Has no effect before the handshake is complete, after the association has ended, or
    /// if it does not use the DTLS chunk.
    pub fn require(&mut self) {
        let association = &mut *self.association;
        if association.is_closed() {
            return;
        }
        let Some(dtls) = &mut association.dtls else {
            return;
        };
        if dtls.phase != Phase::Keying {
            return;
        }
        dtls.phase = Phase::Protected;
        association.events.push_back(Event::Established {
            outbound_streams: association.outbound_streams,
            inbound_streams: association.inbound_streams,
        });
    }

    /// Starts a negotiation of keys of the next epoch. Has no effect if such a negotiation is in
    /// progress, or if the user installs the keys.
    pub fn rekey(&mut self, now: Nanos) {
        let dtls = self.association.dtls.as_mut();
        if let Some(method) = dtls.and_then(|it| it.method.as_mut()) {
            method.rekey(now);
            self.association.manage_keys(now);
        }
    }

    /// Restarts an earlier association of this endpoint with its saved restart keys `keys`. Must be
    /// called before the first packet is sent. Returns `false`, without effect, if the DTLS chunk
    /// is not offered, or if the peer has ever answered, even if the handshake was started again
    /// afterwards.
    pub fn restart_with(&mut self, keys: &RestartKeys) -> bool {
        let begins = matches!(self.association.state, State::CookieWait(_));
        match &mut self.association.dtls {
            // Keys that have sealed packets must not be reused from the first nonce on.
            Some(dtls) if begins && dtls.contexts.counters().sealed == 0 => {
                dtls.restarting(keys);
                true
            }
            _ => false,
        }
    }
}

impl Association {
    /// State of the protection by the DTLS chunk, which [`Config::security`](crate::Config) offers.
    pub fn protection(&self) -> Protection<'_> {
        Protection {
            dtls: self.dtls.as_deref(),
        }
    }

    /// Access to the keys of the DTLS chunk. The caller should drain `poll_transmit` and
    /// `poll_event` afterwards.
    pub fn protection_mut(&mut self) -> ProtectionMut<'_> {
        ProtectionMut { association: self }
    }
}
