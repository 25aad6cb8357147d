//! The interface of key management methods (draft-ietf-tsvwg-sctp-dtls-chunk-04 §6, §7).

use std::fmt::Debug;

use crate::contexts::KeyId;
use crate::material::KeyMaterial;

/// Which part an end has in a key management method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It begins.
    Client,
    /// It answers.
    Server,
}

/// What both ends of an association have agreed on in its handshake.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// The time, nanoseconds.
    pub now: u64,
    /// This end's role.
    pub role: Role,
    /// The method, by its number.
    pub method: u8,
    /// The DTLS Key Management Parameter of the client, with its header and without padding: part of what keys are derived from, so that
    /// none are agreed on where it was changed.
    pub client_parameter: &'a [u8],
    /// The same, of the server.
    pub server_parameter: &'a [u8],
    /// The association was restarted, and keys of that restart are in use.
    pub restarted: bool,
}

/// What a key management method wants done, in this order.
#[derive(Debug)]
#[non_exhaustive]
pub enum Action {
    /// Send this to the peer's key management, reliably and in order.
    Send(Vec<u8>),
    /// Install keys to open records with.
    InstallOpening(KeyId, KeyMaterial),
    /// Install keys to seal records with; those of normal traffic are used from now on.
    InstallSealing(KeyId, KeyMaterial),
    /// Forget keys of an epoch before.
    Remove(KeyId),
    /// Take nothing that is not protected from now on, and tell the user that the association is up.
    Protect,
    /// The peer is not the one it should be, or does not keep to the method: end the association.
    Fail(&'static str),
}

/// A key management method of one association. It is driven like a protocol: after each call, [`poll`](Self::poll) until there is
/// nothing, then ask for the next timeout.
pub trait KeyManagement: Debug + Send {
    /// The association is up, or up again after a restart. Begins with epoch 3.
    fn start(&mut self, start: Start<'_>);

    /// A message of the peer's key management.
    fn handle_message(&mut self, now: u64, message: &[u8]);

    /// The time that [`Self::poll_timeout`] gave has come.
    fn handle_timeout(&mut self, now: u64);

    /// Agree on keys of the next epoch, because the user asks for it or those in use are nearly exhausted. Nothing happens where that is
    /// under way.
    fn rekey(&mut self, now: u64);

    /// What is to be done next.
    fn poll(&mut self) -> Option<Action>;

    /// When [`Self::handle_timeout`] is to be called, nanoseconds.
    fn poll_timeout(&self) -> Option<u64>;
}
