//! Events that a connection reports to its user.

/// Event of a chunk or of the association. Chunks are numbered from 0, separately for each
/// direction.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A DATA chunk was sent for the first time.
    Sent(u64),
    /// A DATA chunk was retransmitted.
    Repeated(u64),
    /// A DATA chunk was received for the first time.
    Received(u64),
    /// A DATA chunk was received again.
    Duplicate(u64),
    /// The association failed, with the reason.
    Failed(String),
}
