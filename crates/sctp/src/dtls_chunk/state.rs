//! The state of an association that offers or uses the DTLS chunk.

use std::collections::{BTreeMap, VecDeque};

use anabranch_dtls::record::{self, HEADER, MAX_CONTENT, TAG};
use anabranch_dtls::{
    ContextCounters, Contexts, InstallError, KeyId, KeyManagement, KeyMaterial, OpenError,
    PeerIdentity, Role, Start,
};
use anabranch_transport::Nanos;
use anabranch_wire::chunk::kind;
use anabranch_wire::extension::{Dtls, DtlsKeyManagement};
use bytes::Bytes;

use super::methods::KeyMethods;
use super::negotiation::DtlsTerms;

/// Bytes before the chunks of a packet: headers of the chunk and of the record.
pub(crate) const SEALED_FRONT: usize = Dtls::HEADER + HEADER;
/// Bytes after the chunks: content type, tag, and padding to a multiple of 4.
pub(crate) const SEALED_BEHIND: usize = 1 + TAG + PADDING;
/// Bytes that the DTLS chunk adds to a packet.
pub const SEALED_OVERHEAD: usize = SEALED_FRONT + SEALED_BEHIND;
const PADDING: usize = (SEALED_FRONT + 1 + TAG).next_multiple_of(4) - (SEALED_FRONT + 1 + TAG);

/// The negotiated key management (draft-ietf-tsvwg-sctp-dtls-chunk-04 §7.2).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyAgreement {
    /// Identifier of the method.
    pub method: u8,
    /// Role of this end.
    pub role: Role,
    /// The DTLS Key Management Parameter of the client, with header and without padding. Keys must
    /// be derived from it, to detect downgrade attacks.
    pub client_parameter: Bytes,
    /// The DTLS Key Management Parameter of the server.
    pub server_parameter: Bytes,
    /// Both ends support protected restarts.
    pub restart: bool,
}

/// The keys with which this end can restart an association after it lost its state
/// (draft-ietf-tsvwg-sctp-dtls-chunk-04 §5.4). Store them securely, use them once, and delete them
/// when either end has restarted the association ([`Event::Restarted`](crate::Event::Restarted)):
/// both ends have used them then, and a nonce must not be used again.
#[derive(Clone, Debug)]
pub struct RestartKeys {
    /// Epoch of the keys.
    pub epoch: u64,
    /// For packets of this end.
    pub send: KeyMaterial,
    /// For packets of the peer.
    pub receive: KeyMaterial,
}

/// Counters of the DTLS chunk (draft-ietf-tsvwg-sctp-dtls-chunk-04 §8.4.11).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DtlsStatistics {
    /// Packets discarded because they were not protected.
    pub dropped_unprotected: u64,
    /// DTLS chunks that failed authentication.
    pub aead_failures: u64,
    /// DTLS chunks discarded as replayed.
    pub replayed: u64,
    /// DTLS chunks opened.
    pub received_protected: u64,
    /// DTLS chunks sent.
    pub sent_protected: u64,
}

/// How far the protection of an association is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Before the handshake is done.
    Offered,
    /// Keys are negotiated. The user must not send yet.
    Keying,
    /// Only protected packets are accepted.
    Protected,
}

#[derive(Debug)]
pub(crate) struct DtlsChunk {
    /// Source of the tie breaker.
    pub(crate) random: [u8; 32],
    own: DtlsKeyManagement,
    agreement: Option<Box<KeyAgreement>>,
    pub(crate) contexts: Contexts,
    pub(crate) method: Option<Box<dyn KeyManagement>>,
    pub(crate) phase: Phase,
    /// The identity that the peer proved last.
    pub(crate) identity: Option<PeerIdentity>,
    /// The keys that opened the packet at hand, if it is protected.
    opened: Option<KeyId>,
    /// Key management messages that wait for room in the send buffer.
    pub(crate) outbox: VecDeque<Bytes>,
    /// Material of restart keys, by epoch: to send, to receive.
    restart_material: BTreeMap<u64, [Option<KeyMaterial>; 2]>,
    /// Records sealed with one epoch before new keys are negotiated.
    rekey_after: u64,
    /// The epoch for which that was requested.
    rekeying: Option<KeyId>,
    /// Latest time.
    pub(crate) now: Nanos,
    pub(crate) dropped_unprotected: u64,
}

impl DtlsChunk {
    /// `window`: packets of the replay window. `rekey_after`: packets after which new keys are
    /// negotiated. The tie breaker follows from `random`, and the random numbers of the key
    /// management from `seed`.
    pub(crate) fn new(
        methods: &KeyMethods,
        window: usize,
        rekey_after: u64,
        [random, seed]: [[u8; 32]; 2],
    ) -> Self {
        let [t0, t1, t2, t3, ..] = random;
        Self {
            random,
            own: methods.parameter(u32::from_be_bytes([t0, t1, t2, t3])),
            agreement: None,
            contexts: Contexts::new(window),
            method: methods.make(seed),
            phase: Phase::Offered,
            identity: None,
            opened: None,
            outbox: VecDeque::new(),
            restart_material: BTreeMap::new(),
            rekey_after,
            rekeying: None,
            now: 0,
            dropped_unprotected: 0,
        }
    }

    /// The parameter of this end.
    pub(crate) fn own(&self) -> &DtlsKeyManagement {
        &self.own
    }

    /// The handshake negotiated `terms`. A mismatch has been refused before.
    pub(crate) fn agree(&mut self, terms: &DtlsTerms) {
        self.own = terms.own.clone();
        let (own, peer) = (terms.own.whole(), terms.peer.whole());
        self.agreement = terms.agree().ok().map(|(role, method)| {
            let (client_parameter, server_parameter) = match role {
                Role::Client => (own, peer),
                Role::Server => (peer, own),
            };
            Box::new(KeyAgreement {
                method,
                role,
                client_parameter,
                server_parameter,
                restart: terms.own.restart && terms.peer.restart,
            })
        });
    }

    pub(crate) fn agreement(&self) -> Option<&KeyAgreement> {
        self.agreement.as_deref()
    }

    /// The association is established. Starts the key management; `true` if the keys of a restart
    /// protect it already.
    pub(crate) fn start(&mut self, now: Nanos) -> bool {
        self.now = now;
        let restarted = self.contexts.sealing_id().map(|it| it.epoch);
        self.phase = if restarted.is_some() {
            Phase::Protected
        } else {
            Phase::Keying
        };
        if let (Some(agreement), Some(method)) = (&self.agreement, &mut self.method) {
            method.start(Start {
                now,
                role: agreement.role,
                method: agreement.method,
                client_parameter: &agreement.client_parameter,
                server_parameter: &agreement.server_parameter,
                restarted,
                identity: self.identity.as_ref(),
            });
        }
        restarted.is_some()
    }

    /// Takes over the keys of `former`, whose peer has restarted the association with restart keys,
    /// or which is about to restart it.
    pub(crate) fn inherit(&mut self, former: DtlsChunk) {
        let by_restart = former.opened.filter(|it| it.restart);
        self.dropped_unprotected = former.dropped_unprotected;
        self.opened = former.opened;
        if let Some(id) = by_restart {
            self.contexts = former.contexts;
            self.contexts.restarted(id.epoch);
            self.identity = former.identity;
        } else if former.phase == Phase::Offered {
            self.contexts = former.contexts;
        }
    }

    /// Installs restart keys from storage, to restart an association.
    pub(crate) fn restarting(&mut self, keys: &RestartKeys) {
        self.contexts
            .restarting(keys.epoch, &keys.send, &keys.receive);
    }

    pub(crate) fn install_sealing(
        &mut self,
        id: KeyId,
        keys: &KeyMaterial,
    ) -> Result<(), InstallError> {
        self.contexts.install_sealing(id, keys)?;
        if id.restart {
            self.restart_material.entry(id.epoch).or_default()[0] = Some(keys.clone());
        }
        Ok(())
    }

    pub(crate) fn install_opening(
        &mut self,
        id: KeyId,
        keys: &KeyMaterial,
    ) -> Result<(), InstallError> {
        self.contexts.install_opening(id, keys)?;
        if id.restart {
            self.restart_material.entry(id.epoch).or_default()[1] = Some(keys.clone());
        }
        Ok(())
    }

    /// Removes keys of an earlier epoch; whether there were any.
    pub(crate) fn remove(&mut self, id: KeyId) -> bool {
        if id.restart {
            self.restart_material.remove(&id.epoch);
        }
        self.contexts.remove(id)
    }

    /// The restart keys of the epoch in use, which the peer has, too.
    pub(crate) fn restart_keys(&self) -> Option<RestartKeys> {
        let KeyId { restart, epoch } = self.contexts.sealing_id()?;
        let [send, receive] = self.restart_material.get(&epoch).filter(|_| !restart)?;
        Some(RestartKeys {
            epoch,
            send: send.clone()?,
            receive: receive.clone()?,
        })
    }

    /// Seals `value`: [`SEALED_FRONT`] bytes of room, the chunks, [`SEALED_BEHIND`] zeros. `false`
    /// if that is not possible; the packet must not be sent then.
    pub(crate) fn seal(&mut self, value: &mut [u8]) -> bool {
        let end = value.len() - PADDING;
        let record = &mut value[Dtls::HEADER..end];
        let length = record.len();
        let Ok(restart) = self.contexts.seal(record) else {
            return false;
        };
        value[..Dtls::HEADER].copy_from_slice(&Dtls::header(restart, length));
        true
    }

    /// Opens the record of a DTLS chunk in place. Returns the range of the packet's chunks.
    pub(crate) fn open(
        &mut self,
        restart: bool,
        record: &mut [u8],
    ) -> Result<std::ops::Range<usize>, OpenError> {
        let opened = self.contexts.open(restart, record)?;
        self.opened = Some(opened.key);
        Ok(record::HEADER..record::HEADER + opened.content)
    }

    /// The keys that opened the packet at hand.
    pub(crate) fn opened_by(&self) -> Option<KeyId> {
        self.opened
    }

    /// A packet that `keys` opened is at hand again.
    pub(crate) fn resume_packet(&mut self, keys: KeyId) {
        self.opened = Some(keys);
    }

    /// The packet at hand has been processed.
    pub(crate) fn end_packet(&mut self) {
        self.opened = None;
    }

    /// Whether the packet at hand is protected.
    pub(crate) fn is_opened(&self) -> bool {
        self.opened.is_some()
    }

    /// Whether the packet at hand must not restart the association: restart keys do not protect it,
    /// or there are none to answer with.
    pub(crate) fn refuses_restart(&self) -> bool {
        match self.opened {
            Some(id) if id.restart => !self.contexts.seals_restart(id.epoch),
            _ => self.requires_protection(),
        }
    }

    /// Whether messages of key management must wait. The server sends and accepts only protected
    /// packets as soon as it has the client's last one, but the client cannot protect its
    /// acknowledgments yet: if one of them is lost, those that follow would be discarded.
    pub(crate) fn delays_messages(&self, all_acknowledged: bool) -> bool {
        let serves = self.agreement().is_some_and(|it| it.role == Role::Server);
        self.phase == Phase::Keying && serves && !all_acknowledged
    }

    /// Whether packets that are not protected must be discarded.
    pub(crate) fn requires_protection(&self) -> bool {
        self.phase == Phase::Protected
    }

    /// Whether a chunk of type `kind` may arrive without protection. While this end restarts the
    /// association, the peer protects COOKIE ACK and all that follows by the restart keys
    /// (draft-ietf-tsvwg-sctp-dtls-chunk-04 §5.4); it may have lost them, and report that.
    pub(crate) fn admits_clear(&self, kind: u8) -> bool {
        match kind {
            kind::INIT | kind::INIT_ACK | kind::DTLS => true,
            kind::ABORT | kind::ERROR => !self.requires_protection(),
            _ => !self.requires_protection() && !self.restarts(),
        }
    }

    /// Whether this end is restarting the association with restart keys.
    pub(crate) fn restarts(&self) -> bool {
        self.phase == Phase::Offered && self.contexts.opens_restarts()
    }

    /// Whether new keys have to be negotiated, because the keys in use are nearly exhausted. Asked
    /// once for an epoch.
    pub(crate) fn rekeys(&mut self) -> bool {
        let id = self.contexts.sealing_id();
        if id.is_none() || self.rekeying == id {
            return false;
        }
        let left = self.contexts.left_to_seal();
        let most = id.map_or(0, |_| self.contexts.most_sealed());
        let due = left < most / 4 || most - left >= self.rekey_after;
        if due {
            self.rekeying = id;
        }
        due
    }

    pub(crate) fn statistics(&self) -> DtlsStatistics {
        let ContextCounters {
            sealed,
            opened,
            forged,
            replayed,
            ..
        } = self.contexts.counters();
        DtlsStatistics {
            dropped_unprotected: self.dropped_unprotected,
            aead_failures: forged,
            replayed,
            received_protected: opened,
            sent_protected: sealed,
        }
    }
}

const _: () = assert!(SEALED_OVERHEAD == 28 && MAX_CONTENT == 16_384);
