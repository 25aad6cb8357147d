//! Reasons for the end of a connection.

use anabranch_sctp::CloseReason;
use thiserror::Error;

/// Reasons for the end of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Closed {
    /// Closed with [`Connection::close`](crate::Connection::close).
    #[error("closed here")]
    Here,
    /// The peer closed DTLS.
    #[error("closed by the peer")]
    ByPeer,
    /// The peer's certificate does not match its offer (RFC 8122 §5).
    #[error("the peer's certificate is not the one that its offer names")]
    Fingerprint,
    /// DTLS failed: handshake, alert, or timeout.
    #[error("DTLS: {0}")]
    Dtls(String),
    /// The association ended.
    #[error("the association ended: {0}")]
    Association(CloseReason),
    /// No Binding request for 30 s: the peer is unreachable, or no longer consents to receive data
    /// (RFC 7675 §5.1).
    #[error("the peer no longer asks whether we are here")]
    Consent,
}
