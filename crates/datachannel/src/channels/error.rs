//! Errors of channels.

use thiserror::Error;

/// Reasons for which a channel cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// All streams that this end may open (by parity) are in use.
    #[error("no stream is left")]
    NoStream,
    /// The negotiated stream is in use, or does not exist in the association.
    #[error("stream {0} cannot be used")]
    Stream(u16),
    /// The maximum number of channels is open.
    #[error("{0} channels are open, as many as there may be")]
    TooMany(usize),
    /// A label or protocol is longer than 65,535 bytes.
    #[error("a {0} of {1} bytes; allowed: 65535")]
    Name(&'static str, usize),
    /// The connection ended.
    #[error("the connection is closed")]
    Closed,
}

/// Reasons for which a message is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SendError {
    /// The channel is closing or closed.
    #[error("the channel is closed")]
    Closed,
    /// The message is larger than the peer accepts (`a=max-message-size`, RFC 8841 §6.1).
    #[error("a message of {length} bytes; the peer takes {max}")]
    TooLarge {
        /// Length in bytes.
        length: usize,
        /// Maximum size that the peer accepts, bytes.
        max: usize,
    },
    /// The channel's queue is full; sending can be tried again when `bufferedAmount` has fallen.
    #[error("the channel's queue is full")]
    Full,
    /// The queues of all channels together are full, or other channels are waiting for space.
    /// Sending can be tried again when `bufferedAmount` of any channel has fallen.
    #[error("the queues of the connection's channels are full")]
    ConnectionFull,
}
