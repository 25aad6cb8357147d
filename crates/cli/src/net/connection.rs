//! Associations of `serve`, `perf` and `cat`, with DTLS over SCTP (RFC 6083) or without.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[cfg(feature = "tls")]
use anabranch_net::rfc6083::{RECORD_OVERHEAD, Rfc6083Settings, SecureAssociation, SecureError};
use anabranch_net::sctp::dtls::PeerIdentity;
use anabranch_net::{
    Association, AssociationError, CloseReason, Message, MessagePart, SendError, SendOptions,
};
use bytes::Bytes;

#[cfg(not(feature = "tls"))]
use crate::absent::rfc6083::{RECORD_OVERHEAD, Rfc6083Settings, SecureAssociation, SecureError};

/// An association, and its DTLS connection if RFC 6083 is used.
#[derive(Clone)]
pub struct Connection {
    association: Association,
    secure: Option<Secure>,
}

#[derive(Clone)]
struct Secure {
    association: Arc<SecureAssociation>,
    /// True after this end has started the shutdown.
    closing: Arc<AtomicBool>,
    /// Number of bytes that this end sent in the handshake.
    handshake: u64,
}

/// Why a message could not be sent.
#[derive(Debug)]
pub enum SendFailure {
    /// The association is closing or closed.
    Closing,
    Other(String),
}

/// A received message, or a part of a message.
pub struct Part {
    pub ppid: u32,
    pub begins: bool,
    pub ends: bool,
    pub bytes: Bytes,
}

impl From<MessagePart> for Part {
    fn from(part: MessagePart) -> Self {
        Self {
            ppid: part.ppid,
            begins: part.begins,
            ends: part.ends,
            bytes: part.bytes,
        }
    }
}

impl From<Message> for Part {
    fn from(message: Message) -> Self {
        Self {
            ppid: message.ppid,
            begins: true,
            ends: true,
            bytes: message.bytes,
        }
    }
}

impl Connection {
    /// Performs the handshake of RFC 6083 as the client within `limit`; without settings there is
    /// no handshake.
    pub async fn client(
        association: Association,
        settings: Option<Arc<Rfc6083Settings>>,
        limit: Duration,
    ) -> Result<Self, String> {
        let Some(settings) = settings else {
            return Ok(Self::plain(association));
        };
        let handshake = SecureAssociation::client(association.clone(), settings);
        match tokio::time::timeout(limit, handshake).await {
            Ok(secure) => Self::secured(association, secure),
            Err(_) => Err("RFC 6083: the handshake takes too long".to_owned()),
        }
    }

    /// Performs the handshake of RFC 6083 as the server within `limit`; without settings there is
    /// no handshake.
    pub async fn server(
        association: Association,
        settings: Option<Arc<Rfc6083Settings>>,
    ) -> Result<Self, String> {
        let Some(settings) = settings else {
            return Ok(Self::plain(association));
        };
        let secure = SecureAssociation::server(association.clone(), settings).await;
        Self::secured(association, secure)
    }

    fn plain(association: Association) -> Self {
        Self {
            association,
            secure: None,
        }
    }

    fn secured(
        association: Association,
        secure: Result<SecureAssociation, SecureError>,
    ) -> Result<Self, String> {
        let secure = secure.map_err(|error| format!("RFC 6083: {error}"))?;
        let sent = association.status();
        Ok(Self {
            secure: Some(Secure {
                association: Arc::new(secure),
                closing: Arc::default(),
                handshake: sent.map_or(0, |it| it.counters.sender.bytes_sent + it.penddata as u64),
            }),
            association,
        })
    }

    /// The association itself, for calls that DTLS does not affect: all except sending, receiving
    /// and shutdown.
    pub fn association(&self) -> &Association {
        &self.association
    }

    /// The identity that the peer has proved.
    pub fn peer_identity(&self) -> Option<PeerIdentity> {
        match &self.secure {
            Some(secure) => Some(secure.association.peer_identity().clone()),
            None => self.association.peer_identity(),
        }
    }

    /// Number of bytes of user data in the `sent` bytes that the association has counted, if each
    /// message except the last has `message` bytes.
    pub fn user_bytes(&self, sent: u64, message: u64) -> u64 {
        let Some(secure) = &self.secure else {
            return sent;
        };
        let records = sent.saturating_sub(secure.handshake);
        let overhead = RECORD_OVERHEAD as u64;
        let count = records.div_ceil(message + overhead);
        records.saturating_sub(count * overhead)
    }

    /// Like [`Association::send`].
    pub async fn send(
        &self,
        bytes: impl Into<Bytes>,
        options: SendOptions,
    ) -> Result<(), SendFailure> {
        let bytes = bytes.into();
        let failure = |error| match error {
            SendError::Closing => SendFailure::Closing,
            error => SendFailure::Other(error.to_string()),
        };
        let Some(secure) = &self.secure else {
            return self.association.send(bytes, options).await.map_err(failure);
        };
        match secure.association.send(bytes, options).await {
            Ok(()) => Ok(()),
            Err(SecureError::Send(error)) => Err(failure(error)),
            Err(_) if secure.closing.load(Ordering::Relaxed) => Err(SendFailure::Closing),
            Err(error) => {
                // Aborts, because the receiver would wait forever for the messages that were not
                // sent.
                self.association.abort(error.to_string());
                Err(SendFailure::Other(error.to_string()))
            }
        }
    }

    /// Like [`Association::recv`]. After the peer's close_notify, this end shuts down too.
    pub async fn recv(&self) -> Result<Option<Message>, String> {
        let Some(secure) = &self.secure else {
            return match self.association.recv().await {
                Err(AssociationError(CloseReason::Shutdown)) => Ok(None),
                received => received.map_err(|it| it.to_string()),
            };
        };
        match secure.association.recv().await {
            Ok(Some(message)) => Ok(Some(message)),
            Ok(None) => {
                secure.closing.store(true, Ordering::Relaxed);
                let ended = secure.association.shutdown().await;
                ended.map(|()| None).map_err(|it| it.to_string())
            }
            // After this end's close_notify, the association may end before the peer's answer
            // arrives.
            Err(SecureError::Truncated) if secure.closing.load(Ordering::Relaxed) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Like [`Association::recv_part`]; with RFC 6083 each part is a whole message.
    pub async fn recv_part(&self) -> Result<Option<Part>, String> {
        if self.secure.is_some() {
            return Ok(self.recv().await?.map(Part::from));
        }
        let part = self.association.recv_part().await;
        Ok(part.map_err(|it| it.to_string())?.map(Part::from))
    }

    /// Like [`Association::start_shutdown`] without a limit.
    pub fn start_shutdown(&self) {
        let Some(secure) = &self.secure else {
            return self.association.start_shutdown(None);
        };
        secure.closing.store(true, Ordering::Relaxed);
        let secure = Arc::clone(&secure.association);
        tokio::spawn(async move {
            if let Err(error) = secure.shutdown().await {
                // Aborts, because readers would wait forever for the end of the association.
                secure.association().abort(error.to_string());
            }
        });
    }

    /// Like [`Association::shutdown_with_timeout`]; returns why the association ended.
    pub async fn shutdown_with_timeout(&self, limit: Duration) -> CloseReason {
        let Some(secure) = &self.secure else {
            self.association.start_shutdown(Some(limit));
            return self.association.closed().await;
        };
        secure.closing.store(true, Ordering::Relaxed);
        match secure.association.shutdown_with_timeout(limit).await {
            Err(SecureError::Association(AssociationError(reason))) => reason,
            _ => self.association.closed().await,
        }
    }
}
