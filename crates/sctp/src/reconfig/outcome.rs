//! Outcomes and errors of stream reconfiguration.

use thiserror::Error;

/// Direction of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamDirection {
    /// From this side to the peer.
    Outgoing,
    /// From the peer to this side.
    Incoming,
}

/// Outcome of a request to change streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReconfigOutcome {
    /// The request was performed.
    Performed,
    /// The peer denied the request (SCTP_STREAM_RESET_DENIED, RFC 6525 §6.1.1); the streams are
    /// unchanged.
    Denied,
    /// The peer reported an error, or this side is closing (SCTP_STREAM_RESET_FAILED); the streams
    /// are unchanged.
    Failed,
}

/// Why a request to change streams was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReconfigError {
    /// The association is not established, or is shutting down (RFC 6525 §5.1).
    #[error("the association is not established")]
    NotEstablished,
    /// At least one endpoint does not offer RE-CONFIG: see the setting `reconfiguration`.
    #[error("reconfiguration was not negotiated")]
    NotNegotiated,
    /// The stream does not exist.
    #[error("stream {stream} is outside the {streams} streams there are")]
    NoSuchStream {
        /// Requested stream.
        stream: u16,
        /// Number of existing streams; stream numbers are smaller than this.
        streams: u16,
    },
    /// A stream, or the whole association, is already being reset (EALREADY, RFC 6525 §6.3.2).
    #[error("one of the streams is being reset already")]
    AlreadyInProgress,
    /// The total number of streams would exceed 65,535.
    #[error("{asked} more streams than the {streams} there are exceed 65535")]
    TooManyStreams {
        /// Number of streams that should be added.
        asked: u16,
        /// Number of existing and already requested streams.
        streams: u16,
    },
    /// This side reset the association less than 30 seconds ago (RFC 6525 §5.1.4).
    #[error("the association was reset less than 30 seconds ago")]
    TooSoon,
}
