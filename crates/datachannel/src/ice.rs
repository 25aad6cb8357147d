//! ICE lite agent with host candidates only: it answers connectivity checks and sends none (RFC
//! 8445 §2.5).

use std::net::SocketAddr;

use anabranch_transport::Nanos;
use anabranch_transport::time::SECOND;
use stun_types::attribute::{
    AttributeType, ErrorCode, MessageIntegrity, Username, XorMappedAddress,
};
use stun_types::message::{
    BINDING, IntegrityAlgorithm, Message, MessageClass, MessageIntegrityCredentials,
    MessageWriteVec, ShortTermCredentials,
};
use stun_types::prelude::*;

use crate::discard::DiscardReason;

const USE_CANDIDATE: AttributeType = AttributeType::new(0x0025);
const ICE_CONTROLLED: AttributeType = AttributeType::new(0x8029);

/// Consent to send expires after this time without a check (RFC 7675 §5.1).
const CONSENT: Nanos = 30 * SECOND;
/// Maximum number of stored addresses of the peer: more than any host has candidate pairs.
const MAX_ADDRESSES: usize = 32;

/// ICE username fragment and password (RFC 8839 §5.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IceCredentials {
    /// `ice-ufrag`.
    pub ufrag: String,
    /// `ice-pwd`.
    pub pwd: String,
}

/// An ICE lite agent.
#[derive(Debug)]
pub(crate) struct Lite {
    key: MessageIntegrityCredentials,
    /// Username in checks: this end's fragment, then the peer's (RFC 8445 §7.2.2).
    username: String,
    /// Source addresses of valid checks; the latest is the last.
    checked: Vec<SocketAddr>,
    /// The address that the peer nominated.
    nominated: Option<SocketAddr>,
    heard: Nanos,
}

impl Lite {
    pub(crate) fn new(now: Nanos, local: &IceCredentials, remote: &IceCredentials) -> Self {
        Self {
            key: ShortTermCredentials::new(local.pwd.clone()).into(),
            username: format!("{}:{}", local.ufrag, remote.ufrag),
            checked: Vec::new(),
            nominated: None,
            heard: now,
        }
    }

    /// Destination of packets: the nominated address, or the source of the latest check if none is
    /// nominated.
    pub(crate) fn remote(&self) -> Option<SocketAddr> {
        self.nominated.or_else(|| self.checked.last().copied())
    }

    /// Whether a valid check came from this address.
    pub(crate) fn knows(&self, address: SocketAddr) -> bool {
        self.checked.contains(&address)
    }

    /// Time at which consent expires.
    pub(crate) fn deadline(&self) -> Nanos {
        self.heard.saturating_add(CONSENT)
    }

    /// Processes a STUN message, and returns the response.
    pub(crate) fn handle(
        &mut self,
        now: Nanos,
        from: SocketAddr,
        bytes: &[u8],
    ) -> Result<Vec<u8>, DiscardReason> {
        let message = Message::from_bytes(bytes).map_err(|_| DiscardReason::Stun)?;
        if !message.has_method(BINDING) || !message.has_class(MessageClass::Request) {
            return Err(DiscardReason::Stun);
        }
        let Ok(username) = message.attribute::<Username>() else {
            return Err(DiscardReason::StunCredentials);
        };
        if username.username() != self.username
            || !message.has_attribute(MessageIntegrity::TYPE)
            || message.validate_integrity(&self.key).is_err()
        {
            // Not answered, because a sender without the password may have forged its source
            // address.
            return Err(DiscardReason::StunCredentials);
        }
        // The sender must be controlling, because a lite agent is controlled (RFC 8445 §6.1.1).
        if message.has_attribute(ICE_CONTROLLED) {
            return self.role_conflict(&message);
        }
        self.heard = now;
        self.checked.retain(|it| *it != from);
        if self.checked.len() >= MAX_ADDRESSES {
            self.checked.remove(0);
        }
        self.checked.push(from);
        if message.has_attribute(USE_CANDIDATE) {
            self.nominated = Some(from);
        }
        self.success(&message, from)
    }

    fn success(&self, request: &Message<'_>, from: SocketAddr) -> Result<Vec<u8>, DiscardReason> {
        let mut answer = Message::builder_success(request, MessageWriteVec::new());
        let mapped = XorMappedAddress::new(from, request.transaction_id());
        answer
            .add_attribute(&mapped)
            .map_err(|_| DiscardReason::Stun)?;
        self.finish(answer)
    }

    /// Builds the error response 487, Role Conflict (RFC 8445 §7.3.1.1).
    fn role_conflict(&self, request: &Message<'_>) -> Result<Vec<u8>, DiscardReason> {
        let mut answer = Message::builder_error(request, MessageWriteVec::new());
        let error = ErrorCode::new(487, "Role Conflict").map_err(|_| DiscardReason::Stun)?;
        answer
            .add_attribute(&error)
            .map_err(|_| DiscardReason::Stun)?;
        self.finish(answer)
    }

    fn finish(&self, mut answer: MessageWriteVec) -> Result<Vec<u8>, DiscardReason> {
        answer
            .add_message_integrity(&self.key, IntegrityAlgorithm::Sha1)
            .and_then(|()| answer.add_fingerprint())
            .map_err(|_| DiscardReason::Stun)?;
        Ok(answer.finish())
    }
}
