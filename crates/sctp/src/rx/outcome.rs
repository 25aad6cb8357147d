//! Outcomes of received data.

/// Outcome of a DATA chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataOutcome {
    /// It was new and was accepted.
    NewData,
    /// It was new and was accepted. It shows that partially delivered messages have no end.
    Aborting,
    /// It was received before; the next SACK reports it.
    Duplicate,
    /// The receive buffer is full: dropped as if it had not arrived.
    DroppedFull,
    /// The next chunk in order does not fit, and no space can be freed, because nothing buffered is
    /// deliverable, not even in part: the peer left out stream sequence numbers. The answer should
    /// be ABORT with Out of Resource.
    Exhausted,
    /// Its TSN is too far ahead to be reported: dropped.
    BeyondWindow,
    /// Its stream does not exist: acknowledged and dropped. The answer should be ERROR with Invalid
    /// Stream Identifier (RFC 9260 §6.5).
    InvalidStream,
    /// It has no user data. The answer should be ABORT with No User Data (RFC 9260 §6.2).
    NoUserData,
    /// It contradicts other chunks (a fragment inside another message, a message without an end, a
    /// stream sequence number used twice). The answer should be ABORT with Protocol Violation.
    ProtocolViolation,
}
