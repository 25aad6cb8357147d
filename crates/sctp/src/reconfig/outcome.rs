//! What the user is told.

use thiserror::Error;

/// Which way a stream goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamDirection {
    /// From this side to the peer.
    Outgoing,
    /// From the peer to this side.
    Incoming,
}

/// What became of a wish to change streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReconfigOutcome {
    /// It was done.
    Performed,
    /// The peer does not allow it (SCTP_STREAM_RESET_DENIED, RFC 6525 §6.1.1); nothing changed.
    Denied,
    /// The peer found fault with the request, or this side closes (SCTP_STREAM_RESET_FAILED); nothing changed.
    Failed,
}

/// Why a wish to change streams was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReconfigError {
    /// The association is not up, or not any more (RFC 6525 §5.1).
    #[error("the association is not established")]
    NotEstablished,
    /// One of the ends does not offer RE-CONFIG: see the setting `reconfiguration`.
    #[error("reconfiguration was not negotiated")]
    NotNegotiated,
    /// The stream is not among those there are.
    #[error("stream {stream} is outside the {streams} streams there are")]
    NoSuchStream {
        /// The stream asked for.
        stream: u16,
        /// Streams there are.
        streams: u16,
    },
    /// One of the streams is being reset already, or all are (EALREADY, RFC 6525 §6.3.2).
    #[error("one of the streams is being reset already")]
    AlreadyInProgress,
    /// There cannot be so many streams.
    #[error("{asked} more streams than the {streams} there are exceed 65535")]
    TooManyStreams {
        /// Streams asked for.
        asked: u16,
        /// Streams there are.
        streams: u16,
    },
    /// All numbers began anew less than 30 seconds ago (RFC 6525 §5.1.4).
    #[error("the association was reset less than 30 seconds ago")]
    TooSoon,
}
