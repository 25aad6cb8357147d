//! Identity of a peer, from its certificate.

use std::fmt;

/// The identity that a peer has proved by its certificate. Access control should use it instead of
/// addresses (draft-porfiri-tsvwg-sctp-dtls-handshake §3.3).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerIdentity {
    /// Names in the certificate (subjectAltName): URIs such as `spiffe://example.org/amf`, and DNS
    /// names.
    pub names: Vec<String>,
    /// SHA-256 fingerprint of the certificate.
    pub fingerprint: [u8; 32],
}

impl PeerIdentity {
    /// An identity with these names and this fingerprint of the certificate.
    pub fn new(names: Vec<String>, fingerprint: [u8; 32]) -> Self {
        Self { names, fingerprint }
    }

    /// Returns true if both identities belong to one peer: they have the same names (the
    /// certificate may have been renewed), or the same certificate.
    pub fn is_same_as(&self, other: &Self) -> bool {
        let named = !self.names.is_empty() && self.names == other.names;
        named || self.fingerprint == other.fingerprint
    }
}

impl fmt::Display for PeerIdentity {
    /// Writes the names without control characters, or the fingerprint if there are no names.
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
