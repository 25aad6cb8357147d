//! The identity that a peer proved by its certificate.

use std::fmt;

/// The identity of a peer, from its certificate. Decisions about access should be based on it, and
/// not on addresses (draft-porfiri-tsvwg-sctp-dtls-handshake §3.3).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerIdentity {
    /// The names of its certificate (subjectAltName): URIs, like `spiffe://example.org/amf`, and
    /// DNS names.
    pub names: Vec<String>,
    /// SHA-256 of its certificate.
    pub fingerprint: [u8; 32],
}

impl PeerIdentity {
    /// An identity with these names, and the fingerprint of its certificate.
    pub fn new(names: Vec<String>, fingerprint: [u8; 32]) -> Self {
        Self { names, fingerprint }
    }

    /// Returns true if both are of one peer: they have the same names, so that a certificate may be
    /// renewed, or the same certificate.
    pub fn is_same_as(&self, other: &Self) -> bool {
        let named = !self.names.is_empty() && self.names == other.names;
        named || self.fingerprint == other.fingerprint
    }
}

impl fmt::Display for PeerIdentity {
    /// Writes the names, without control characters, or the fingerprint of a certificate without
    /// names.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.names.is_empty() {
            return write!(f, "{}", self.names.join(", ").escape_debug());
        }
        f.write_str("sha256:")?;
        self.fingerprint
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
