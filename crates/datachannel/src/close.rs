//! Why a connection ended.

use anabranch_sctp::CloseReason;
use thiserror::Error;

/// Why a connection ended.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Closed {
    /// By [`Connection::close`](crate::Connection::close).
    #[error("closed here")]
    Here,
    /// The peer closed DTLS.
    #[error("closed by the peer")]
    ByPeer,
    /// The peer's certificate is not the one of its offer (RFC 8122 §5).
    #[error("the peer's certificate is not the one that its offer names")]
    Fingerprint,
    /// DTLS failed: handshake, alert, or no answer.
    #[error("DTLS: {0}")]
    Dtls(String),
    /// The association ended.
    #[error("the association ended: {0}")]
    Association(CloseReason),
    /// No Binding request for 30 s: the peer is gone, or no longer wants to be sent to (RFC 7675 §5.1).
    #[error("the peer no longer asks whether we are here")]
    Consent,
}
