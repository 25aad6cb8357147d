//! DTLS over SCTP (RFC 6083), for peers without the DTLS chunk.
//!
//! Every user message is one record of DTLS 1.2, of at most 16,384 bytes. SCTP authenticates its
//! chunks by a key of the handshake (AUTH, RFC 4895), but does not encrypt them.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use anabranch_net::rfc6083::{SecureAssociation, Settings};
//! use anabranch_net::sctp::dtls::tls::{Credentials, Trust};
//! use anabranch_net::{Config, Endpoint, SendOptions};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let read = std::fs::read;
//! let credentials = Credentials::from_pem(&read("own.pem")?, &read("own.key")?)?;
//! let trust = Trust::default().with_authorities(&read("authority.pem")?)?;
//! let settings = Arc::new(Settings::new(&credentials, trust.with_name("hss.example.org"))?);
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

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anabranch_dtls::rfc6083::{Action, Connection, MAX_MESSAGE, Opened};
use anabranch_dtls::{PeerIdentity, Role};
use anabranch_sctp::{Authentication, ChunkTypes, KeyError, SendOptions};
use anabranch_wire::chunk::kind;
use bytes::Bytes;
use thiserror::Error;

pub use anabranch_dtls::rfc6083::Settings;

use crate::association::Association;
use crate::config::Config;
use crate::error::{AssociationError, SendError};
use crate::message::Message;
use crate::receipt::{DeliveryError, Receipt};

/// Maximum size of the messages that are kept because they arrived before the peer's last message
/// of the handshake, bytes. The peer is not authenticated then.
const MAX_EARLY: usize = 1 << 20;
/// Added to the length of each of them, for the memory that a small one takes.
const EARLY_COST: usize = 256;

impl Config {
    /// Returns a copy for associations of [`SecureAssociation`]. It requires AUTH for DATA, I-DATA,
    /// FORWARD TSN and I-FORWARD-TSN (RFC 6083 §4.5), and for SACK and SHUTDOWN.
    #[must_use]
    pub fn with_rfc6083(mut self) -> Self {
        self.sctp.authentication = Authentication::Required;
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
    /// The association does not use AUTH ([`Config::with_rfc6083`]).
    #[error("the association does not use AUTH, which RFC 6083 requires")]
    NoAuthentication,
    /// A record of DTLS has at most 16,384 bytes (RFC 6083 §3.2).
    #[error("a message of {0} bytes; RFC 6083 allows {MAX_MESSAGE}")]
    TooLong(usize),
    /// This end has closed, or its key has sealed as many messages as it may.
    #[error("nothing can be sent: this end has closed, or its key is exhausted")]
    Exhausted,
    /// The peer is not authentic, or violates DTLS. The association is aborted.
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

/// An association under DTLS (RFC 6083).
#[derive(Debug)]
pub struct SecureAssociation {
    association: Association,
    peer: PeerIdentity,
    ppid: u32,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    connection: Connection,
    /// The receipts of the last messages, by stream.
    last: BTreeMap<Option<u16>, Receipt>,
    early: VecDeque<Message>,
    peer_closed: bool,
}

impl SecureAssociation {
    /// Performs the handshake as the client, usually the end that connected.
    ///
    /// There is no time limit. If the future is dropped, the association should be aborted.
    ///
    /// # Errors
    /// The peer is not trusted, violates DTLS, or the association does not use AUTH; it is then
    /// aborted. The association ended.
    pub async fn client(
        association: Association,
        settings: Arc<Settings>,
    ) -> Result<Self, SecureError> {
        Self::handshake(association, settings, Role::Client).await
    }

    /// Performs the handshake as the server, usually the end that accepted.
    ///
    /// There is no time limit. If the future is dropped, the association should be aborted.
    ///
    /// # Errors
    /// As [`SecureAssociation::client`].
    pub async fn server(
        association: Association,
        settings: Arc<Settings>,
    ) -> Result<Self, SecureError> {
        Self::handshake(association, settings, Role::Server).await
    }

    async fn handshake(
        association: Association,
        settings: Arc<Settings>,
        role: Role,
    ) -> Result<Self, SecureError> {
        if !association.has_auth_key(0) {
            association.abort("RFC 6083 requires AUTH");
            return Err(SecureError::NoAuthentication);
        }
        #[expect(clippy::disallowed_methods, reason = "the library requires a time")]
        let now = Instant::now();
        let mut handshake = Handshake {
            ppid: settings.ppid,
            connection: Connection::new(settings, role, now),
            association,
            receipts: Vec::new(),
            early: VecDeque::new(),
            early_size: 0,
        };
        let peer = handshake.run().await.inspect_err(|error| {
            if let SecureError::Peer(why) = error {
                handshake.association.abort(*why);
            }
        })?;
        Ok(Self {
            association: handshake.association,
            peer,
            ppid: handshake.ppid,
            state: Mutex::new(State {
                connection: handshake.connection,
                last: BTreeMap::new(),
                early: handshake.early,
                peer_closed: false,
            }),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The identity that the peer proved. Decisions about access should be based on it.
    pub fn peer_identity(&self) -> &PeerIdentity {
        &self.peer
    }

    /// The association below: its status, events and paths. Messages that are sent by it directly
    /// end it, because they are not encrypted.
    pub fn association(&self) -> &Association {
        &self.association
    }

    /// Like [`Association::send`], encrypted. A key in `options` has no effect: the key of the
    /// handshake is used. Streams other than 0 are recommended, because stream 0 has the messages
    /// of the handshake (RFC 6083 §4.4).
    ///
    /// # Errors
    /// The message is longer than 16,384 bytes, this end has closed, or as [`Association::send`].
    pub async fn send(
        &self,
        message: impl AsRef<[u8]>,
        options: SendOptions,
    ) -> Result<(), SecureError> {
        let message = message.as_ref();
        if message.len() > MAX_MESSAGE {
            return Err(SecureError::TooLong(message.len()));
        }
        let record = self.lock().connection.seal(message);
        let record = record.ok_or(SecureError::Exhausted)?;
        let stream = options.stream;
        let sent = self
            .association
            .send_with_receipt(record, options.with_key(None));
        let receipt = sent.await?;
        self.lock().last.insert(stream, receipt);
        Ok(())
    }

    /// The next message, decrypted. `None`: the peer has closed, and nothing is missing.
    ///
    /// Cancel-safe: if the future is dropped, the message waits for the next call.
    ///
    /// # Errors
    /// The peer violates DTLS, and the association is aborted. It ended otherwise.
    pub async fn recv(&self) -> Result<Option<Message>, SecureError> {
        loop {
            let early = self.lock().early.pop_front();
            let message = match early {
                Some(message) => message,
                None => match self.association.recv().await? {
                    Some(message) => message,
                    None if self.lock().peer_closed => return Ok(None),
                    None => return Err(SecureError::Truncated),
                },
            };
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
                        self.association.send(record, self.control()).await?;
                    }
                }
                Ok(_) => {}
                Err(why) => {
                    self.association.abort(why);
                    return Err(SecureError::Peer(why));
                }
            }
        }
    }

    /// Options of messages of DTLS itself.
    fn control(&self) -> SendOptions {
        SendOptions::on(0).with_ppid(self.ppid).reliable()
    }

    /// Closes: waits until the peer has acknowledged all messages, sends close_notify (RFC 6083
    /// §4.9), and shuts down the association. The peer's remaining messages are lost: read until
    /// [`SecureAssociation::recv`] returns `None` if they are wanted.
    ///
    /// # Errors
    /// The association ended otherwise: the last messages may not have arrived.
    pub async fn shutdown(&self) -> Result<(), SecureError> {
        let last = std::mem::take(&mut self.lock().last);
        for receipt in last.into_values() {
            match receipt.await {
                // The sender's policy allowed it.
                Ok(()) | Err(DeliveryError::Abandoned(_) | DeliveryError::Unsent) => {}
                Err(error) => return Err(error.into()),
            }
        }
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
            } else {
                self.connection.handle_message(&message.bytes);
            }
        }
    }

    async fn apply(&mut self, action: Action) -> Result<Option<PeerIdentity>, SecureError> {
        match action {
            Action::Send {
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
                // The peer's handshake waits for it, and so does this end.
                let options = options.with_immediate(true);
                let sent = self.association.send_with_receipt(record, options);
                self.receipts.push(sent.await?);
            }
            Action::SetKey { id, key } => {
                let key = Bytes::copy_from_slice(&key[..]);
                self.association.change_auth_keys(|it| it.set(id, key))?;
            }
            Action::UseKey(id) => self.association.change_auth_keys(|it| it.activate(id))?,
            Action::RemoveKey(id) => self.association.change_auth_keys(|it| it.delete(id))?,
            Action::Established(peer) => return Ok(Some(peer)),
            Action::Fail(why) => return Err(SecureError::Peer(why)),
            _ => {}
        }
        Ok(None)
    }
}
