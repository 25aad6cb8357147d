//! Dynamic address reconfiguration (RFC 5061): adds and removes addresses of an established
//! association by ASCONF chunks.
//!
//! This module holds the state without the association: [`Answers`] caches the responses sent to
//! the peer, and [`Asking`] holds this side's requests, the outstanding ASCONF and the local
//! addresses. The association ([`crate::association`]) sends the chunks, runs the timer and
//! processes responses.

mod answers;
mod asking;
mod wish;

pub(crate) use answers::{Answers, Serial};
pub(crate) use asking::{Asking, MAX_REQUESTS};
pub use wish::{AddressChange, AddressChangeError, AddressChangeOutcome};

/// ASCONF state of an association that negotiated the extension.
#[derive(Debug)]
pub(crate) struct AddressChanges {
    pub(crate) answers: Answers,
    pub(crate) asking: Asking,
}

impl AddressChanges {
    /// Serial numbers begin with the initial TSNs (RFC 5061 §5.1 A2) of both ends: `ours` and
    /// `peers`.
    pub(crate) fn new(ours: u32, peers: u32) -> Self {
        Self {
            answers: Answers::new(peers),
            asking: Asking::new(ours),
        }
    }
}
