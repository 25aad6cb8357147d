//! Outcomes of received data.

/// Outcome of a DATA chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataOutcome {
    /// It was new and was accepted.
    NewData,
    /// The chunk was new and was accepted. It shows that partially delivered messages have no end.
    Aborting,
    /// The chunk was received before; the next SACK reports it.
    Duplicate,
    /// The receive buffer is full: dropped as if it had not arrived.
    DroppedFull,
    /// The next chunk in order does not fit, and no space can be freed, because nothing buffered is
    /// deliverable, not even in part: the peer left out stream sequence numbers. The answer should
    /// be ABORT with Out of Resource.
    Exhausted,
    /// The TSN is too far ahead to be reported: the chunk is dropped.
    BeyondWindow,
    /// The stream does not exist: the chunk is acknowledged and dropped. The answer should be ERROR
    /// with Invalid Stream Identifier (RFC 9260 §6.5).
    InvalidStream,
    /// The chunk has no user data. The answer should be ABORT with No User Data (RFC 9260 §6.2).
    NoUserData,
    /// The chunk contradicts other chunks (a fragment inside another message, a message without an
    /// end, a stream sequence number used twice). The answer should be ABORT with Protocol
    /// Violation.
    ProtocolViolation,
}
