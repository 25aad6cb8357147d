//! The interface of key management methods (draft-ietf-tsvwg-sctp-dtls-chunk-04 §6, §7).

use std::fmt::Debug;

use crate::contexts::KeyId;
use crate::identity::PeerIdentity;
use crate::material::KeyMaterial;

/// The role of an end in a key management method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// This end starts the agreement on keys.
    Client,
    /// This end answers.
    Server,
}

/// Results of the SCTP handshake that a key management method needs.
#[derive(Clone, Copy, Debug)]
pub struct AgreementStart<'a> {
    /// The current time, nanoseconds.
    pub now: u64,
    /// This end's role.
    pub role: Role,
    /// Number of the key management method.
    pub method: u8,
    /// The DTLS Key Management Parameter of the client, with its header and without padding. Keys
    /// are derived from it, so that a modified parameter prevents an agreement.
    pub client_parameter: &'a [u8],
    /// The DTLS Key Management Parameter of the server.
    pub server_parameter: &'a [u8],
    /// Epoch of the restart keys in use, if the association was restarted.
    pub restarted: Option<u64>,
    /// The identity that the peer proved before the restart.
    pub identity: Option<&'a PeerIdentity>,
}

/// Actions that a key management method requests. The caller must execute them in order.
#[derive(Debug)]
#[non_exhaustive]
pub enum KeyManagementAction {
    /// Send this message to the peer's key management, reliably and in order.
    Send(Vec<u8>),
    /// Install keys for opening records.
    InstallOpening(KeyId, KeyMaterial),
    /// Install keys for sealing records. Keys for normal traffic are used immediately.
    InstallSealing(KeyId, KeyMaterial),
    /// Remove keys of an earlier epoch.
    Remove(KeyId),
    /// The peer has proved this identity, for the first time or again.
    Authenticated(PeerIdentity),
    /// Accept only protected packets from now on, and report to the user that the association is
    /// established.
    Protect,
    /// The peer failed authentication, or violated the method: end the association.
    Fail(&'static str),
}

/// A key management method of one association. After each call, the caller should call
/// [`poll`](Self::poll) until it returns `None`, and then read the next timeout.
pub trait KeyManagement: Debug + Send {
    /// Called when the association is established, or after a restart. Starts at epoch 3.
    fn start(&mut self, start: AgreementStart<'_>);

    /// Processes a message of the peer's key management.
    fn handle_message(&mut self, now: u64, message: &[u8]);

    /// Called at the time of [`Self::poll_timeout`].
    fn handle_timeout(&mut self, now: u64);

    /// Starts an agreement on keys of the next epoch, because the user requests it or the current
    /// keys are nearly exhausted. Has no effect if an agreement is in progress.
    fn rekey(&mut self, now: u64);

    /// The next action.
    fn poll(&mut self) -> Option<KeyManagementAction>;

    /// The time at which [`Self::handle_timeout`] should be called, nanoseconds.
    fn poll_timeout(&self) -> Option<u64>;
}
