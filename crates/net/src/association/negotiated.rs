//! The extensions that both ends of an association offered.

use anabranch_sctp::{self as sctp, ChunkTypes};

use super::Association;

/// The extensions that an association uses, because both ends offered them: see
/// [`Association::negotiated`]. The names are those of the settings that offer them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Negotiated {
    /// Messages may be abandoned (RFC 3758).
    pub partial_reliability: bool,
    /// Messages are interleaved (RFC 8260).
    pub interleaving: bool,
    /// Streams can be reset and added (RFC 6525).
    pub reconfiguration: bool,
    /// Chunks can be authenticated (RFC 4895).
    pub authentication: bool,
    /// Both ends may change their addresses (RFC 5061).
    pub address_changes: bool,
    /// Packets go to the peer without a checksum (RFC 9653).
    pub zero_checksum: bool,
    /// Both ends use ECN.
    pub ecn: bool,
    /// The chunks that this side accepts only with a valid HMAC (SCTP_LOCAL_AUTH_CHUNKS, RFC 6458 §8.2.4).
    pub local_auth_chunks: ChunkTypes,
    /// The chunks that the peer accepts only with a valid HMAC (SCTP_PEER_AUTH_CHUNKS, RFC 6458 §8.2.3).
    pub peer_auth_chunks: ChunkTypes,
}

impl Negotiated {
    fn of(association: &sctp::Association) -> Self {
        Self {
            partial_reliability: association.is_partially_reliable(),
            interleaving: association.is_interleaving(),
            reconfiguration: association.is_reconfigurable(),
            authentication: association.is_authenticated(),
            address_changes: association.takes_address_changes(),
            zero_checksum: association.sends_zero_checksums(),
            ecn: association.uses_ecn(),
            local_auth_chunks: association.demanded_chunks(),
            peer_auth_chunks: association.peer_demanded_chunks(),
        }
    }

    /// The names of the extensions in use.
    pub fn names(&self) -> Vec<&'static str> {
        let all = [
            ("partial_reliability", self.partial_reliability),
            ("interleaving", self.interleaving),
            ("reconfiguration", self.reconfiguration),
            ("authentication", self.authentication),
            ("address_changes", self.address_changes),
            ("zero_checksum", self.zero_checksum),
            ("ecn", self.ecn),
        ];
        let used = all.iter().filter(|(_, used)| *used);
        used.map(|(name, _)| *name).collect()
    }
}

impl Association {
    /// The extensions in use; none before the association is up and once it is forgotten.
    pub fn negotiated(&self) -> Negotiated {
        let state = self.shared.lock();
        let association = state.endpoint.association(self.id);
        association.map_or_else(Negotiated::default, Negotiated::of)
    }
}
