//! Results and errors of stream reconfiguration.

use thiserror::Error;

/// Direction of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamDirection {
    /// From this side to the peer.
    Outgoing,
    /// From the peer to this side.
    Incoming,
}

/// Result of a request to change streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReconfigOutcome {
    /// The request was performed.
    Performed,
    /// The peer does not allow it (SCTP_STREAM_RESET_DENIED, RFC 6525 §6.1.1), and the streams are
    /// unchanged.
    Denied,
    /// The peer reported an error, or this side closes (SCTP_STREAM_RESET_FAILED), and the streams
    /// are unchanged.
    Failed,
}

/// Why a request to change streams was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReconfigError {
    /// The association is not established, or no longer (RFC 6525 §5.1).
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
        /// Number of streams.
        streams: u16,
    },
    /// A stream, or the whole association, is already being reset (EALREADY, RFC 6525 §6.3.2).
    #[error("one of the streams is being reset already")]
    AlreadyInProgress,
    /// The number of streams would be too large.
    #[error("{asked} more streams than the {streams} there are exceed 65535")]
    TooManyStreams {
        /// Requested number of streams.
        asked: u16,
        /// Current number of streams.
        streams: u16,
    },
    /// The last association reset is less than 30 seconds ago (RFC 6525 §5.1.4).
    #[error("the association was reset less than 30 seconds ago")]
    TooSoon,
}
