//! What a connection tells its user.

/// What became of chunks and of the association. Chunks have numbers, counted from 0 at the first of their direction.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A data chunk was sent for the first time.
    Sent(u64),
    /// A data chunk was sent again.
    Repeated(u64),
    /// A data chunk arrived for the first time.
    Received(u64),
    /// A data chunk arrived again.
    Duplicate(u64),
    /// The association is over before its time: why.
    Failed(String),
}
