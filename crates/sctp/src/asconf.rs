//! Dynamic address reconfiguration (RFC 5061): adds and removes addresses of an established
//! association by ASCONF chunks.
//!
//! This module contains the part of the state that does not depend on the association:
//! [`AsconfAckCache`] caches the responses sent to the peer, and [`AsconfSender`] holds this side's
//! requests, the outstanding ASCONF and the local addresses. The association
//! ([`crate::association`]) sends the chunks, runs the timer and processes responses.

mod ack_cache;
mod request;
mod sender;

pub(crate) use ack_cache::{AsconfAckCache, SerialClass};
pub use request::{AddressChange, AddressChangeError, AddressChangeOutcome};
pub(crate) use sender::{AsconfSender, MAX_REQUESTS};

/// ASCONF state of an association that negotiated the extension.
#[derive(Debug)]
pub(crate) struct AsconfState {
    pub(crate) ack_cache: AsconfAckCache,
    pub(crate) sender: AsconfSender,
}

impl AsconfState {
    /// Initial state. Serial numbers start at the initial TSN of this side (`ours`) and of the peer
    /// (`peers`), RFC 5061 §5.1 A2.
    pub(crate) fn new(ours: u32, peers: u32) -> Self {
        Self {
            ack_cache: AsconfAckCache::new(peers),
            sender: AsconfSender::new(ours),
        }
    }
}
