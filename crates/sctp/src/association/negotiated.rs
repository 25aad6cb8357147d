//! Negotiated extensions of an association.

use super::Association;
use crate::authentication::ChunkTypes;

/// Extensions that an association uses, because both ends offered them. Each field has the name of
/// the setting that offers the extension.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Negotiated {
    /// Whether messages may be abandoned (RFC 3758 §3.3).
    pub partial_reliability: bool,
    /// Whether messages are interleaved (I-DATA, RFC 8260 §2.2.1).
    pub interleaving: bool,
    /// Whether streams can be reset and added (RE-CONFIG, RFC 6525).
    pub reconfiguration: bool,
    /// Whether chunks can be authenticated (AUTH, RFC 4895).
    pub authentication: bool,
    /// Whether all chunks are encrypted in DTLS chunks (draft-ietf-tsvwg-sctp-dtls-chunk-04).
    pub security: bool,
    /// Whether both ends may change their addresses (ASCONF, RFC 5061).
    pub address_changes: bool,
    /// Whether packets are sent to the peer without a checksum (RFC 9653).
    pub zero_checksum: bool,
    /// Whether both ends use ECN.
    pub ecn: bool,
    /// Whether both ends use RSCTP.
    pub rsctp: bool,
    /// Chunks that this side accepts only with a valid HMAC (SCTP_LOCAL_AUTH_CHUNKS, RFC 6458
    /// §8.2.4).
    pub local_auth_chunks: ChunkTypes,
    /// Chunks that the peer accepts only with a valid HMAC (SCTP_PEER_AUTH_CHUNKS, RFC 6458
    /// §8.2.3).
    pub peer_auth_chunks: ChunkTypes,
}

impl Negotiated {
    /// Names of the extensions in use.
    pub fn names(&self) -> Vec<&'static str> {
        // Destructured, so that a new field causes a compiler error until it is listed.
        let Self {
            partial_reliability,
            interleaving,
            reconfiguration,
            authentication,
            security,
            address_changes,
            zero_checksum,
            ecn,
            rsctp,
            local_auth_chunks: _,
            peer_auth_chunks: _,
        } = *self;
        let all = [
            ("partial_reliability", partial_reliability),
            ("interleaving", interleaving),
            ("reconfiguration", reconfiguration),
            ("authentication", authentication),
            ("security", security),
            ("address_changes", address_changes),
            ("zero_checksum", zero_checksum),
            ("ecn", ecn),
            ("rsctp", rsctp),
        ];
        let used = all.iter().filter(|(_, used)| *used);
        used.map(|(name, _)| *name).collect()
    }
}

impl Association {
    /// Extensions in use; none before the association is established.
    pub fn negotiated(&self) -> Negotiated {
        Negotiated {
            partial_reliability: self.tx.is_partially_reliable(),
            interleaving: self.tx.is_interleaving(),
            reconfiguration: self.is_reconfigurable(),
            authentication: self.is_authenticated(),
            security: self.protection().is_active(),
            address_changes: self.uses_asconf(),
            zero_checksum: self.checksum_mode.sends_zero(),
            ecn: self.marks.is_some(),
            rsctp: self.rsctp.is_some(),
            local_auth_chunks: self.local_auth_chunks(),
            peer_auth_chunks: self.peer_auth_chunks(),
        }
    }
}
