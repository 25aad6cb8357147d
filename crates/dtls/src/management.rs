//! The interface of key management methods (draft-ietf-tsvwg-sctp-dtls-chunk-04 §6, §7).

use std::fmt::Debug;

use crate::contexts::KeyId;
use crate::identity::PeerIdentity;
use crate::material::KeyMaterial;

/// The role of an end in a key management method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// This end starts the agreement.
    Client,
    /// This end answers.
    Server,
}

/// Agreements of both ends of an association in its handshake.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// The time, nanoseconds.
    pub now: u64,
    /// This end's role.
    pub role: Role,
    /// The method, by its number.
    pub method: u8,
    /// The DTLS Key Management Parameter of the client, with its header and without padding. Keys
    /// are derived from it, so that a modified parameter prevents an agreement.
    pub client_parameter: &'a [u8],
    /// The DTLS Key Management Parameter of the server.
    pub server_parameter: &'a [u8],
    /// The association was restarted, and the restart keys of this epoch are in use.
    pub restarted: Option<u64>,
    /// The identity that the peer had before that restart.
    pub identity: Option<&'a PeerIdentity>,
}

/// Actions that a key management method requests, to be done in order.
#[derive(Debug)]
#[non_exhaustive]
pub enum Action {
    /// Send this to the peer's key management, reliably and in order.
    Send(Vec<u8>),
    /// Install keys for opening records.
    InstallOpening(KeyId, KeyMaterial),
    /// Install keys for sealing records; keys of normal traffic are used from now on.
    InstallSealing(KeyId, KeyMaterial),
    /// Remove keys of an earlier epoch.
    Remove(KeyId),
    /// The peer has proved this identity, now or again.
    Authenticated(PeerIdentity),
    /// Accept only protected packets from now on, and notify the user that the association is
    /// established.
    Protect,
    /// The peer is not authentic, or violates the method: end the association.
    Fail(&'static str),
}

/// A key management method of one association. Key management is driven like a protocol: after each
/// call, the caller should [`poll`](Self::poll) until no output remains, then read the next
/// timeout.
pub trait KeyManagement: Debug + Send {
    /// The association is established, or again after a restart. Starts with epoch 3.
    fn start(&mut self, start: Start<'_>);

    /// A message of the peer's key management.
    fn handle_message(&mut self, now: u64, message: &[u8]);

    /// The time of [`Self::poll_timeout`] has come.
    fn handle_timeout(&mut self, now: u64);

    /// Starts the agreement on keys of the next epoch, because the user requests it or the current
    /// keys are nearly exhausted. Has no effect if that is in progress.
    fn rekey(&mut self, now: u64);

    /// The next action.
    fn poll(&mut self) -> Option<Action>;

    /// The time at which [`Self::handle_timeout`] should be called, nanoseconds.
    fn poll_timeout(&self) -> Option<u64>;
}
