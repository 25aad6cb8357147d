//! Outcomes of received DATA and I-DATA chunks.

/// Outcome of a DATA chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataOutcome {
    /// The chunk was new and was accepted.
    NewData,
    /// The chunk was new and was accepted. It shows that some partially delivered messages will not
    /// be completed.
    Aborting,
    /// The chunk was received before; the next SACK reports it.
    Duplicate,
    /// The receive buffer is full. The chunk was dropped as if it had not arrived.
    DroppedFull,
    /// The next chunk in order does not fit, and no space can be freed: no buffered data is
    /// deliverable, not even in part, because the peer skipped stream sequence numbers. The caller
    /// should send an ABORT with Out of Resource.
    Exhausted,
    /// The TSN is too far ahead to be reported in a SACK. The chunk was dropped.
    BeyondWindow,
    /// The stream does not exist. The chunk was acknowledged and dropped. The caller should send an
    /// ERROR with Invalid Stream Identifier (RFC 9260 §6.5).
    InvalidStream,
    /// The chunk has no user data. The caller should send an ABORT with No User Data (RFC 9260
    /// §6.2).
    NoUserData,
    /// The chunk contradicts other chunks (a fragment inside another message, a message without an
    /// end, a stream sequence number used twice). The caller should send an ABORT with Protocol
    /// Violation.
    ProtocolViolation,
}
