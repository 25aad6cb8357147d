//! DTLS over SCTP (RFC 6083), for peers that do not support the DTLS chunk.
//!
//! Every user message is one record of DTLS 1.2, of at most 16,384 bytes. A key from the DTLS
//! handshake authenticates the chunks (AUTH, RFC 4895); chunk headers are not encrypted.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use anabranch_net::rfc6083::{Rfc6083Settings, SecureAssociation};
//! use anabranch_net::sctp::dtls::tls::{Credentials, Trust};
//! use anabranch_net::{Config, Endpoint, SendOptions};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let read = std::fs::read;
//! let credentials = Credentials::from_pem(&read("own.pem")?, &read("own.key")?)?;
//! let trust = Trust::default().with_authorities(&read("authority.pem")?)?;
//! let trust = trust.with_name("hss.example.org");
//! let settings = Arc::new(Rfc6083Settings::new(&credentials, trust)?);
//!
//! let client = Endpoint::bind(Config::default().with_rfc6083())?;
//! let association = client.connect(([192, 0, 2, 1], 5868)).await?;
//! let secure = SecureAssociation::client(association, settings).await?;
//! secure.send("request", SendOptions::on(1)).await?;
//! let answer = secure.recv().await?; // `None`: the peer has closed
//! secure.shutdown().await?;
//! # Ok(())
//! # }
//! ```

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use anabranch_dtls::rfc6083::{Connection, HandshakeAction, MAX_MESSAGE, Opened};
use anabranch_dtls::{PeerIdentity, Role};
use anabranch_sctp::{
    Authentication, ChunkTypes, CloseReason, KeyError, Negotiated, SendOptions, SharedKeys,
};
use anabranch_wire::chunk::kind;
use bytes::Bytes;
use thiserror::Error;
use tokio::sync::RwLock;

pub use anabranch_dtls::rfc6083::{RECORD_OVERHEAD, Rfc6083Settings};

use crate::association::Association;
use crate::config::Config;
use crate::error::{AssociationError, SendError};
use crate::message::Message;
use crate::receipt::{Answer, DeliveryError, Receipt};
use crate::runtime::within;

/// Maximum size of messages that are buffered because they arrived before the peer's last handshake
/// message, bytes. Limited, because the peer is not authenticated at that time.
const MAX_EARLY: usize = 1 << 20;
/// Memory overhead that is added to the length of each buffered message, bytes.
const EARLY_COST: usize = 256;
/// Number of stored receipts from which on completed receipts are removed.
const MIN_RECEIPTS: usize = 64;

impl Config {
    /// Returns a copy for associations of [`SecureAssociation`]. Both ends must then authenticate
    /// DATA, I-DATA, FORWARD TSN and I-FORWARD-TSN (RFC 6083 §4.5), and also SACK and SHUTDOWN.
    /// Configured shared keys are removed, because the first key must be empty (RFC 6083 §4.8).
    #[must_use]
    pub fn with_rfc6083(mut self) -> Self {
        self.sctp.authentication = Authentication::Required;
        self.sctp.auth_keys = SharedKeys::default();
        self.sctp.authenticated_chunks = Some(ChunkTypes::of(&[
            kind::DATA,
            kind::I_DATA,
            kind::FORWARD_TSN,
            kind::I_FORWARD_TSN,
            kind::SACK,
            kind::SHUTDOWN,
        ]));
        self
    }
}

/// An error of DTLS over SCTP.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SecureError {
    /// The association does not use AUTH, or one end does not require it for DATA and FORWARD TSN
    /// ([`Config::with_rfc6083`]).
    #[error("an end does not require AUTH for DATA and FORWARD TSN, as RFC 6083 demands")]
    NoAuthentication,
    /// The message does not fit one DTLS record of 16,384 bytes (RFC 6083 §3.2). The value is its
    /// size, bytes.
    #[error("a message of {0} bytes; RFC 6083 allows {MAX_MESSAGE}")]
    TooLong(usize),
    /// This end has closed, or its key has encrypted the maximum number of messages.
    #[error("nothing can be sent: this end has closed, or its key is exhausted")]
    Exhausted,
    /// The peer failed authentication, or violated DTLS. The association is aborted.
    #[error("{0}")]
    Peer(&'static str),
    /// The association ended without the peer's close_notify: messages may be missing.
    #[error("the peer ended the association without a close_notify")]
    Truncated,
    /// A message cannot be sent.
    #[error(transparent)]
    Send(#[from] SendError),
    /// A message was not acknowledged.
    #[error(transparent)]
    Delivery(#[from] DeliveryError),
    /// A key for AUTH cannot be changed.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The association ended.
    #[error(transparent)]
    Association(#[from] AssociationError),
}

/// An association whose messages are protected by DTLS (RFC 6083).
#[derive(Debug)]
pub struct SecureAssociation {
    association: Association,
    peer: PeerIdentity,
    ppid: u32,
    state: Mutex<State>,
    /// Held for reading while a message is sent, so that close_notify follows all messages.
    sending: RwLock<()>,
}

#[derive(Debug)]
struct State {
    connection: Connection,
    receipts: Receipts,
    early: VecDeque<Message>,
    peer_closed: bool,
    /// Number of futures of [`SecureAssociation::shutdown`].
    shutdowns: usize,
}

/// Receipts of messages that the peer has not acknowledged, and of some acknowledged ones.
#[derive(Debug, Default)]
struct Receipts {
    waiting: Vec<Receipt>,
    /// Number of receipts at which completed ones are removed next.
    limit: usize,
    /// The first error among receipts that were removed.
    failed: Option<DeliveryError>,
}

impl Receipts {
    fn push(&mut self, receipt: Receipt) {
        self.waiting.push(receipt);
        if self.waiting.len() > self.limit.max(MIN_RECEIPTS) {
            let failed = &mut self.failed;
            self.waiting.retain_mut(|receipt| {
                let answer = receipt.take_answer();
                let is_waiting = answer.is_none();
                *failed = failed.take().or(answer.and_then(failure));
                is_waiting
            });
            self.limit = 2 * self.waiting.len();
        }
    }

    /// Ready when every message is acknowledged, or abandoned by its policy.
    fn poll_acknowledged(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), DeliveryError>> {
        while self.failed.is_none()
            && let Some(last) = self.waiting.last_mut()
        {
            let answer = ready!(Pin::new(last).poll(cx));
            self.waiting.pop();
            self.failed = failure(answer);
        }
        Poll::Ready(self.failed.clone().map_or(Ok(()), Err))
    }
}

/// Returns an error if the message may not have reached the peer. A message that was abandoned by
/// its policy is no error.
fn failure(answer: Answer) -> Option<DeliveryError> {
    let is_policy =
        |it: &DeliveryError| matches!(it, DeliveryError::Abandoned(_) | DeliveryError::Unsent);
    answer.err().filter(|it| !is_policy(it))
}

/// Returns true if both ends require AUTH for the chunks of user data (RFC 6083 §4.5).
fn authenticates(negotiated: &Negotiated) -> bool {
    let (data, forward) = match negotiated.interleaving {
        true => (kind::I_DATA, kind::I_FORWARD_TSN),
        false => (kind::DATA, kind::FORWARD_TSN),
    };
    let ends = [negotiated.local_auth_chunks, negotiated.peer_auth_chunks];
    ends.iter()
        .all(|it| it.has(data) && (!negotiated.partial_reliability || it.has(forward)))
}

/// Aborts the association when dropped, unless the handshake has succeeded.
struct AbortUnlessDone(Option<Association>);

impl Drop for AbortUnlessDone {
    fn drop(&mut self) {
        if let Some(association) = self.0.take() {
            association.abort("the handshake of DTLS did not end");
        }
    }
}

impl SecureAssociation {
    /// Performs the handshake as the client, usually the end that started the association.
    ///
    /// If the future is dropped, the association is aborted.
    ///
    /// # Errors
    /// The association has ended; or it does not use AUTH, or the peer is not trusted, violates
    /// DTLS, or does not answer within [`Rfc6083Settings::handshake_timeout`]. In all cases except
    /// the first, the association is aborted.
    pub async fn client(
        association: Association,
        settings: Arc<Rfc6083Settings>,
    ) -> Result<Self, SecureError> {
        Self::handshake(association, settings, Role::Client).await
    }

    /// Performs the handshake as the server, usually the end that accepted the association.
    ///
    /// If the future is dropped, the association is aborted.
    ///
    /// # Errors
    /// The same errors as [`SecureAssociation::client`].
    pub async fn server(
        association: Association,
        settings: Arc<Rfc6083Settings>,
    ) -> Result<Self, SecureError> {
        Self::handshake(association, settings, Role::Server).await
    }

    async fn handshake(
        association: Association,
        settings: Arc<Rfc6083Settings>,
        role: Role,
    ) -> Result<Self, SecureError> {
        if !association.has_auth_key(0) || !authenticates(&association.negotiated()) {
            association.abort("RFC 6083 requires AUTH");
            return Err(SecureError::NoAuthentication);
        }
        let runtime = association.runtime().clone();
        let limit = Duration::from_nanos(settings.handshake_timeout);
        let mut guard = AbortUnlessDone(Some(association.clone()));
        let mut handshake = Handshake {
            ppid: settings.ppid,
            connection: Connection::new(settings, role, runtime.now()),
            association,
            receipts: Vec::new(),
            early: VecDeque::new(),
            early_size: 0,
        };
        let ended = within(&*runtime, limit, handshake.run()).await;
        let peer = ended
            .unwrap_or(Err(SecureError::Peer("the handshake takes too long")))
            .inspect_err(|error| {
                if let SecureError::Peer(why) = error {
                    handshake.association.abort(*why);
                }
            })?;
        guard.0 = None;
        Ok(Self {
            association: handshake.association,
            peer,
            ppid: handshake.ppid,
            state: Mutex::new(State {
                connection: handshake.connection,
                receipts: Receipts::default(),
                early: handshake.early,
                peer_closed: false,
                shutdowns: 0,
            }),
            sending: RwLock::new(()),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The identity that the peer has proved. Access control should use this identity.
    pub fn peer_identity(&self) -> &PeerIdentity {
        &self.peer
    }

    /// The association below: its status, events and paths. Messages must not be sent on it
    /// directly, because the peer then aborts: they are not encrypted.
    pub fn association(&self) -> &Association {
        &self.association
    }

    /// Like [`Association::send`], encrypted. A key in `options` has no effect: the key of the
    /// handshake is used. Streams other than 0 are recommended, because stream 0 carries the
    /// messages of DTLS itself (RFC 6083 §4.4).
    ///
    /// # Errors
    /// The message is longer than 16,384 bytes, this end has closed, or the errors of
    /// [`Association::send`].
    pub async fn send(
        &self,
        message: impl AsRef<[u8]>,
        options: SendOptions,
    ) -> Result<(), SecureError> {
        let message = message.as_ref();
        if message.len() > MAX_MESSAGE {
            return Err(SecureError::TooLong(message.len()));
        }
        let _sending = self.sending.read().await;
        let record = self.lock().connection.seal(message);
        let record = record.ok_or(SecureError::Exhausted)?;
        let sent = self
            .association
            .send_with_receipt(record, options.with_key(None));
        let receipt = sent.await?;
        self.lock().receipts.push(receipt);
        Ok(())
    }

    /// The next message, decrypted. `None`: the peer has sent close_notify, and no message is
    /// missing.
    ///
    /// Cancel-safe: if the future is dropped, the message waits for the next call.
    ///
    /// # Errors
    /// The peer violated DTLS, and the association is aborted; or it has ended without
    /// close_notify.
    pub async fn recv(&self) -> Result<Option<Message>, SecureError> {
        loop {
            let early = {
                let mut state = self.lock();
                if state.peer_closed {
                    // Data after close_notify is ignored (RFC 5246 §7.2.1).
                    return Ok(None);
                }
                state.early.pop_front()
            };
            let message = match early {
                Some(message) => message,
                None => match self.association.recv().await? {
                    Some(message) => message,
                    None => return Err(SecureError::Truncated),
                },
            };
            if is_out_of_order(&message) {
                return self.fail("a message of DTLS itself that is not in the order of stream 0");
            }
            let opened = self.lock().connection.open(&message.bytes);
            match opened {
                Ok(Opened::Data(bytes)) => {
                    let bytes = Bytes::from(bytes);
                    return Ok(Some(Message { bytes, ..message }));
                }
                Ok(Opened::Closed) => {
                    self.lock().peer_closed = true;
                    return Ok(None);
                }
                Ok(Opened::Nothing(answer)) => {
                    if let Some(record) = answer {
                        // Answers a request of the peer. The answer is a warning that may be
                        // omitted if this end has no space or is closing (RFC 5246 §7.4.1.1).
                        let _ = self.association.try_send(record, self.control());
                    }
                }
                Ok(_) => {}
                Err(why) => return self.fail(why),
            }
        }
    }

    fn fail<T>(&self, why: &'static str) -> Result<T, SecureError> {
        self.association.abort(why);
        Err(SecureError::Peer(why))
    }

    /// Options for messages of DTLS itself.
    fn control(&self) -> SendOptions {
        SendOptions::on(0).with_ppid(self.ppid).reliable()
    }

    /// Closes: waits until the peer has acknowledged all messages, sends close_notify (RFC 6083
    /// §4.9), and shuts down the association. Messages that the peer still sends are lost. To get
    /// them, call [`SecureAssociation::recv`] until it returns `None` before closing.
    ///
    /// The time is limited as in [`Association::shutdown`], by the setting `drain_timeout`: if the
    /// peer acknowledges no new data for this time, the association is aborted. With
    /// `drain_timeout` off, a peer that does not read keeps the association open, and so does a
    /// future of [`SecureAssociation::send`] that is neither polled nor dropped.
    ///
    /// Cancel-safe: if the future is dropped before close_notify was sent, messages can still be
    /// sent.
    ///
    /// # Errors
    /// A message was not acknowledged, for example because the peer restarted the association; the
    /// association then stays open and should be aborted. Another error is that the association was
    /// aborted or has failed; the last messages may then not have arrived.
    pub async fn shutdown(&self) -> Result<(), SecureError> {
        let _drain = ExpectedDrain::of(self);
        let _none_is_sent = self.sending.write().await;
        poll_fn(|cx| self.lock().receipts.poll_acknowledged(cx)).await?;
        let alert = self.lock().connection.close();
        if let Some(record) = alert {
            match self.association.send(record, self.control()).await {
                // The peer has shut down the association already.
                Ok(()) | Err(SendError::Closing) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(self.association.shutdown().await?)
    }

    /// Like [`SecureAssociation::shutdown`], with a timeout. On any error the association is
    /// aborted.
    ///
    /// # Errors
    /// The errors of [`SecureAssociation::shutdown`]; [`CloseReason::ShutdownTimeout`] if the
    /// timeout expired.
    pub async fn shutdown_with_timeout(&self, limit: Duration) -> Result<(), SecureError> {
        let runtime = self.association.runtime().clone();
        let timeout = || Err(AssociationError(CloseReason::ShutdownTimeout).into());
        let ended = within(&*runtime, limit, self.shutdown()).await;
        ended.unwrap_or_else(timeout).inspect_err(|error| {
            self.association.abort(error.to_string());
        })
    }
}

/// Applies the drain timeout while at least one future of [`SecureAssociation::shutdown`] exists.
struct ExpectedDrain<'a>(&'a SecureAssociation);

impl<'a> ExpectedDrain<'a> {
    fn of(secure: &'a SecureAssociation) -> Self {
        let mut state = secure.lock();
        state.shutdowns += 1;
        if state.shutdowns == 1 {
            secure.association.expect_drain(true);
        }
        Self(secure)
    }
}

impl Drop for ExpectedDrain<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.shutdowns -= 1;
        if state.shutdowns == 0 {
            self.0.association.expect_drain(false);
        }
    }
}

/// Returns true if a message of DTLS itself violates the rule that such messages are sent on stream
/// 0, in order (RFC 6083 §4.4).
fn is_out_of_order(message: &Message) -> bool {
    !Connection::is_data(&message.bytes) && (message.stream != 0 || message.unordered)
}

/// A handshake in progress.
struct Handshake {
    association: Association,
    connection: Connection,
    ppid: u32,
    receipts: Vec<Receipt>,
    early: VecDeque<Message>,
    early_size: usize,
}

impl Handshake {
    async fn run(&mut self) -> Result<PeerIdentity, SecureError> {
        loop {
            while let Some(action) = self.connection.poll() {
                if let Some(peer) = self.apply(action).await? {
                    return Ok(peer);
                }
            }
            let Some(message) = self.association.recv().await? else {
                return Err(SecureError::Truncated);
            };
            if Connection::is_data(&message.bytes) {
                self.early_size += EARLY_COST + message.bytes.len();
                if self.early_size > MAX_EARLY {
                    return Err(SecureError::Peer(
                        "too many messages before the handshake ends",
                    ));
                }
                self.early.push_back(message);
            } else if is_out_of_order(&message) {
                return Err(SecureError::Peer(
                    "a message of the handshake that is not in the order of stream 0",
                ));
            } else {
                self.connection.handle_message(&message.bytes);
            }
        }
    }

    async fn apply(
        &mut self,
        action: HandshakeAction,
    ) -> Result<Option<PeerIdentity>, SecureError> {
        match action {
            HandshakeAction::Send {
                record,
                key,
                after_all,
            } => {
                if after_all {
                    for receipt in self.receipts.drain(..) {
                        receipt.await?;
                    }
                }
                let options = SendOptions::on(0).with_ppid(self.ppid);
                let options = options.reliable().with_key(Some(key));
                // Requests an immediate SACK, because both ends wait for this message in the
                // handshake.
                let options = options.with_immediate(true);
                let sent = self.association.send_with_receipt(record, options);
                self.receipts.push(sent.await?);
            }
            HandshakeAction::SetKey { id, key } => {
                let key = Bytes::copy_from_slice(&key[..]);
                self.association.change_auth_keys(|it| it.set(id, key))?;
            }
            HandshakeAction::UseKey(id) => {
                self.association.change_auth_keys(|it| it.activate(id))?
            }
            HandshakeAction::RemoveKey(id) => {
                self.association.change_auth_keys(|it| it.delete(id))?
            }
            HandshakeAction::Established(peer) => return Ok(Some(peer)),
            HandshakeAction::Fail(why) => return Err(SecureError::Peer(why)),
            _ => {}
        }
        Ok(None)
    }
}
