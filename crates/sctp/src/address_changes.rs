//! Addresses that change while an association lives (RFC 5061), by requests in ASCONF chunks.
//!
//! Here is what it consists of, without the association that carries it out: [`Answers`] are what the peer was told, [`Asking`] is
//! what this side wishes of the peer, one ASCONF at a time, and which addresses it has. The association ([`crate::association`])
//! sends, times and settles it.

mod answers;
mod asking;
mod wish;

pub(crate) use answers::{Answers, Serial};
pub(crate) use asking::{Asking, MAX_REQUESTS};
pub use wish::{AddressChange, AddressChangeError, AddressChangeOutcome};

/// What an association keeps of it while both ends speak it.
#[derive(Debug)]
pub(crate) struct AddressChanges {
    pub(crate) answers: Answers,
    pub(crate) asking: Asking,
}

impl AddressChanges {
    /// Serial numbers begin as the TSNs do (RFC 5061 §5.1 A2): `ours` and the `peers`.
    pub(crate) fn new(ours: u32, peers: u32) -> Self {
        Self {
            answers: Answers::new(peers),
            asking: Asking::new(ours),
        }
    }
}
