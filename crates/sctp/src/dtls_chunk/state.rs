//! State of an association that offers or uses the DTLS chunk.

use std::collections::{BTreeMap, VecDeque};

use anabranch_dtls::record::{self, HEADER, MAX_CONTENT, TAG};
use anabranch_dtls::{
    AgreementStart, ContextCounters, Contexts, InstallError, KeyId, KeyManagement, KeyMaterial,
    OpenError, PeerIdentity, Role,
};
use anabranch_transport::Nanos;
use anabranch_wire::chunk::kind;
use anabranch_wire::extension::{Dtls, DtlsKeyManagement};
use anabranch_wire::serial::Tsn;
use bytes::Bytes;

use super::methods::KeyMethods;
use super::negotiation::DtlsTerms;

/// Bytes before the chunks of a sealed packet: headers of the DTLS chunk and the DTLS record.
pub(crate) const SEALED_FRONT: usize = Dtls::HEADER + HEADER;
/// Bytes after the chunks of a sealed packet: content type, tag, and padding to a multiple of 4.
pub(crate) const SEALED_BEHIND: usize = 1 + TAG + PADDING;
/// Number of bytes by which the DTLS chunk enlarges a packet.
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
    /// DTLS Key Management Parameter of the client, with header and without padding. Keys must be
    /// derived from it, so that downgrade attacks are detected.
    pub client_parameter: Bytes,
    /// DTLS Key Management Parameter of the server, in the same format.
    pub server_parameter: Bytes,
    /// Whether both ends support protected restarts.
    pub restart: bool,
}

/// Keys with which this end can restart an association after it lost its state
/// (draft-ietf-tsvwg-sctp-dtls-chunk-04 §5.4). Store them securely, and use them once. Delete them
/// when either end has restarted the association ([`Event::Restarted`](crate::Event::Restarted)),
/// because both ends have then used them, and a nonce must not be used again.
#[derive(Clone, Debug)]
pub struct RestartKeys {
    /// Epoch of the keys.
    pub epoch: u64,
    /// Keys for packets sent by this end.
    pub send: KeyMaterial,
    /// Keys for packets of the peer.
    pub receive: KeyMaterial,
}

/// Counters of the DTLS chunk (draft-ietf-tsvwg-sctp-dtls-chunk-04 §8.4.9).
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

/// Progress of the protection of an association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The handshake is not complete.
    Offered,
    /// The key management negotiates keys. The user may send only if it is the key management.
    Keying,
    /// Only protected packets are accepted.
    Protected,
}

#[derive(Debug)]
pub(crate) struct DtlsChunk {
    /// Random bytes from which the tie breaker is derived.
    pub(crate) random: [u8; 32],
    own: DtlsKeyManagement,
    agreement: Option<Box<KeyAgreement>>,
    pub(crate) contexts: Contexts,
    pub(crate) method: Option<Box<dyn KeyManagement>>,
    pub(crate) phase: Phase,
    /// Identity that the peer proved last.
    pub(crate) identity: Option<PeerIdentity>,
    /// Keys that opened the current packet; `None` if it is not protected.
    opened: Option<KeyId>,
    /// Key management messages that wait for space in the send buffer.
    pub(crate) outbox: VecDeque<Bytes>,
    /// Restart keys by epoch: first the keys for sending, then the keys for receiving.
    restart_material: BTreeMap<u64, [Option<KeyMaterial>; 2]>,
    /// Number of records sealed in one epoch after which new keys are negotiated.
    rekey_after: u64,
    /// Epoch in which a negotiation of new keys was already requested.
    rekeying: Option<KeyId>,
    /// Latest time passed to the association, in nanoseconds.
    pub(crate) now: Nanos,
    pub(crate) dropped_unprotected: u64,
    clear_data: ClearData,
}

/// User data that arrived without protection, with a key management outside of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClearData {
    /// There are no keys to open packets yet, so that data arrives without protection.
    Arrives,
    /// No TSN after this one arrived without protection.
    Until(Tsn),
    /// None, or it was read long ago.
    None,
}

/// Distance of a TSN from the last one that arrived without protection, from which on all earlier
/// data has certainly been read. It is far beyond the number of chunks that a receiver can hold.
const ALL_READ: u32 = 1 << 30;

impl DtlsChunk {
    /// State for the offered `methods`. `window`: size of the replay window in packets.
    /// `rekey_after`: number of packets after which new keys are negotiated. The tie breaker is
    /// derived from `random`, and the random numbers of the key management from `seed`.
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
            clear_data: ClearData::Arrives,
        }
    }

    /// DTLS Key Management Parameter of this end.
    pub(crate) fn own(&self) -> &DtlsKeyManagement {
        &self.own
    }

    /// Applies the negotiated `terms`. The caller has already refused a mismatch.
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

    /// Starts the key management of an established association. Returns `true` if restart keys
    /// already protect the association.
    pub(crate) fn start(&mut self, now: Nanos) -> bool {
        self.now = now;
        let restarted = self.contexts.sealing_id().map(|it| it.epoch);
        self.phase = if restarted.is_some() {
            self.clear_data = ClearData::None;
            Phase::Protected
        } else {
            Phase::Keying
        };
        if let (Some(agreement), Some(method)) = (&self.agreement, &mut self.method) {
            method.start(AgreementStart {
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

    /// Inherits keys from `former`: after the peer has restarted the association with restart keys,
    /// or while this end is restarting it.
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

    /// Installs stored restart keys, with which this end will restart an association.
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

    /// Records, with the first keys to open packets, that no later data is accepted without
    /// protection. `highest`: highest received TSN, if any.
    pub(crate) fn end_clear_data(&mut self, highest: Option<Tsn>) {
        if self.clear_data == ClearData::Arrives {
            self.clear_data = highest.map_or(ClearData::None, ClearData::Until);
        }
    }

    /// Whether there are or were keys to open packets. Data without protection is not accepted
    /// again after such keys were removed.
    pub(crate) fn had_opening_keys(&self) -> bool {
        self.contexts.newest_opening().is_some() || self.clear_data != ClearData::Arrives
    }

    /// Whether a message whose first chunk has the TSN `first` arrived in protected packets only.
    /// `cumulative`: the cumulative TSN.
    pub(crate) fn covers(&mut self, first: Tsn, cumulative: Tsn) -> bool {
        if self.method.is_some() {
            return self.requires_protection();
        }
        let ClearData::Until(last) = self.clear_data else {
            return self.clear_data == ClearData::None;
        };
        // All data that arrived without protection was read, and later TSNs repeat its TSNs.
        if last.le(cumulative) && cumulative.distance_from(last) >= ALL_READ {
            self.clear_data = ClearData::None;
            return true;
        }
        !first.le(last)
    }

    /// Removes keys of an earlier epoch; returns whether there were any.
    pub(crate) fn remove(&mut self, id: KeyId) -> bool {
        if id.restart {
            self.restart_material.remove(&id.epoch);
        }
        self.contexts.remove(id)
    }

    /// Restart keys of the current epoch, which the peer also has.
    pub(crate) fn restart_keys(&self) -> Option<RestartKeys> {
        let KeyId { restart, epoch } = self.contexts.sealing_id()?;
        let [send, receive] = self.restart_material.get(&epoch).filter(|_| !restart)?;
        Some(RestartKeys {
            epoch,
            send: send.clone()?,
            receive: receive.clone()?,
        })
    }

    /// Seals `value`, which consists of [`SEALED_FRONT`] unused bytes, the chunks, and
    /// [`SEALED_BEHIND`] zeros. If the result is `false`, the packet must not be sent.
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

    /// Keys that opened the current packet.
    pub(crate) fn opened_by(&self) -> Option<KeyId> {
        self.opened
    }

    /// Marks the current packet as opened with `keys`.
    pub(crate) fn resume_packet(&mut self, keys: KeyId) {
        self.opened = Some(keys);
    }

    /// Clears the state of the current packet, which has been processed.
    pub(crate) fn end_packet(&mut self) {
        self.opened = None;
    }

    /// Whether the current packet was protected.
    pub(crate) fn is_opened(&self) -> bool {
        self.opened.is_some()
    }

    /// Whether the current packet must not restart the association: it is not protected by restart
    /// keys, or this end has no restart keys for its answer.
    pub(crate) fn refuses_restart(&self) -> bool {
        match self.opened {
            Some(id) if id.restart => !self.contexts.seals_restart(id.epoch),
            _ => self.requires_protection(),
        }
    }

    /// Whether processing of key management messages must wait until all sent data is acknowledged.
    /// After the client's last message the server accepts only protected packets, but the client
    /// cannot protect its SACKs yet. If a SACK was lost, later unprotected SACKs would be
    /// discarded.
    pub(crate) fn delays_messages(&self, all_acknowledged: bool) -> bool {
        let serves = self.agreement().is_some_and(|it| it.role == Role::Server);
        self.phase == Phase::Keying && serves && !all_acknowledged
    }

    /// Whether unprotected packets must be discarded.
    pub(crate) fn requires_protection(&self) -> bool {
        self.phase == Phase::Protected
    }

    /// Whether a chunk of type `kind` is accepted without protection. While this end restarts the
    /// association, the peer protects COOKIE ACK and all later chunks by the restart keys
    /// (draft-ietf-tsvwg-sctp-dtls-chunk-04 §5.4). A peer that has lost these keys may report their
    /// loss without protection.
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

    /// Whether new keys must be negotiated now, because the current keys are nearly exhausted or
    /// have sealed `rekey_after` packets. Returns `true` once per epoch.
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
