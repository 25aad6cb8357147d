//! Error types of endpoints, associations and streams.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use anabranch_sctp::{AddressChangeError, CloseReason};
use thiserror::Error;

use crate::peer::Peer;

/// Why [`Endpoint::bind`](crate::Endpoint::bind) failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BindError {
    /// The process is not allowed to open raw sockets.
    #[error(
        "raw IP (protocol 132) is not allowed to this process: run it as root, or give it CAP_NET_RAW \
         (`setcap cap_net_raw+ep PROGRAM`), or send SCTP inside UDP (Carrier::Encapsulated), which needs no right"
    )]
    RawNotAllowed(#[source] io::Error),
    /// A socket could not be opened or bound.
    #[error("cannot bind {address} port {port}: {source}")]
    Socket {
        /// The local address.
        address: IpAddr,
        /// The UDP port; 0 for raw IP.
        port: u16,
        /// The error of the system.
        source: io::Error,
    },
    /// The SCTP port is in use by another endpoint on the same sockets, at one of the addresses or
    /// at all addresses.
    #[error(
        "SCTP port {0} is taken by another endpoint on the same sockets; endpoints with one port have addresses of their own each"
    )]
    PortTaken(u16),
    /// Endpoints on the same sockets use all SCTP ports of the dynamic range (RFC 6335 §6).
    #[error("no SCTP port is free: endpoints on the same sockets have all from 49152 to 65535")]
    NoFreePort,
    /// The task of the sockets has ended, together with its runtime.
    #[error("the task of these sockets is gone")]
    Stopped,
    /// A setting is invalid.
    #[error("{0}")]
    Config(String),
    /// The system provides no random bytes, which the secret of the endpoint requires.
    #[error("the system gives no random bytes: {0}")]
    Random(String),
    /// No runtime is available for the driver.
    #[error(
        "Endpoint::bind must be called on a runtime (tokio's, or within ThreadRuntime::block_on), or Config::runtime must name one"
    )]
    NoRuntime,
}

/// Why [`Endpoint::connect`](crate::Endpoint::connect) failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The peer's address or port is invalid.
    #[error(transparent)]
    Refused(#[from] anabranch_sctp::ConnectError),
    /// No socket of this endpoint has the family of the peer's address.
    #[error("no socket of this endpoint is of the family of {0}")]
    Family(IpAddr),
    /// The UDP port of the peer is unknown: neither the peer nor the carrier has one.
    #[error("the peer's UDP port is not known: name it in the Peer, or in Carrier::Encapsulated")]
    NoUdpPort,
    /// The peer refuses, and redirects to another peer
    /// ([`Incoming::redirect`](crate::Incoming::redirect)). The redirection is not authenticated:
    /// the caller must decide whether to trust the new peer, and how many redirections to follow.
    #[error("the peer redirects to {0}")]
    Redirected(Peer),
    /// The name could not be resolved, or has no address of a family for which this endpoint has
    /// sockets.
    #[error("cannot resolve {name}: {why}")]
    Name {
        /// The name that was to be resolved.
        name: String,
        /// The error of the resolver.
        why: String,
    },
    /// The handshake failed.
    #[error(transparent)]
    Association(#[from] AssociationError),
}

impl ConnectError {
    /// Like [`CloseReason::is_port_collision`]: connecting from another SCTP port may succeed.
    pub fn is_port_collision(&self) -> bool {
        matches!(self, Self::Association(AssociationError(reason)) if reason.is_port_collision())
    }
}

/// Error of an association that did not end by a graceful shutdown.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the association ended: {}", words(.0))]
pub struct AssociationError(
    /// The reason that the protocol reported.
    pub CloseReason,
);

fn words(reason: &CloseReason) -> String {
    let setting = match reason {
        CloseReason::MessageTooLong { .. } => " (max_message_size)",
        _ => "",
    };
    format!("{reason}{setting}")
}

/// Why a change of an association's addresses was not requested.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum AddressError {
    /// A socket for the address could not be opened.
    #[error(transparent)]
    Socket(Arc<BindError>),
    /// The change is not possible in this association.
    #[error(transparent)]
    Refused(#[from] AddressChangeError),
}

/// Why a message was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SendError {
    /// The stream was not negotiated.
    #[error("stream {stream} is outside the {streams} streams negotiated")]
    NoSuchStream {
        /// The requested stream number.
        stream: u16,
        /// Number of streams that were negotiated.
        streams: u16,
    },
    /// DATA must carry at least one byte (RFC 9260 §3.3.1).
    #[error("a message must not be empty")]
    Empty,
    /// The message is larger than [`Config::max_message_size`](crate::Config::max_message_size).
    #[error("a message of {size} bytes is larger than max_message_size, {most} bytes")]
    TooLarge {
        /// Size of the message, bytes.
        size: usize,
        /// Maximum size, bytes.
        most: usize,
    },
    /// The association is closing or closed.
    #[error("the association is closing or closed")]
    Closing,
    /// The protocol refused the message for another reason.
    #[error(transparent)]
    Refused(anabranch_sctp::SendError),
}

/// Why [`Association::try_send`](crate::Association::try_send) did not accept a message.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TrySendError {
    /// The send buffer is full; the message is returned.
    #[error("the send buffer is full")]
    Full(bytes::Bytes),
    /// The message can never be sent.
    #[error(transparent)]
    Error(#[from] SendError),
}

/// Why a [`SendStream`](crate::SendStream) failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SinkError {
    /// The message was not accepted.
    #[error(transparent)]
    Send(#[from] SendError),
    /// `start_send` was called before `poll_ready` had returned ready; the message was not
    /// accepted.
    #[error("the sink is not ready: the message before waits for room")]
    NotReady,
    /// The association ended while the sink was being closed: the last messages may not have
    /// arrived.
    #[error(transparent)]
    Association(#[from] AssociationError),
}

/// Why [`Endpoint::accept`](crate::Endpoint::accept),
/// [`Endpoint::incoming`](crate::Endpoint::incoming) or
/// [`Incoming::accept`](crate::Incoming::accept) failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AcceptError {
    /// The endpoint does not listen.
    #[error(
        "the endpoint does not listen: set Config::accept, as Config::server does, or call Endpoint::listen"
    )]
    NotListening,
    /// [`Endpoint::close`](crate::Endpoint::close), [`drain`](crate::Endpoint::drain) or
    /// [`refuse`](crate::Endpoint::refuse) was called.
    #[error("the endpoint is closed and accepts no more associations")]
    Closed,
    /// The peer restarted meanwhile, or waited longer than its cookie is valid
    /// (`sctp.valid_cookie_life`, 60 s by default; RFC 9260 §5.2.6); or the number of associations
    /// has reached [`Config::max_associations`](crate::Config::max_associations).
    #[error("the peer that waited to be accepted is gone, or there are max_associations")]
    Gone,
    /// The endpoint's task has ended.
    #[error("the endpoint's task is gone")]
    Stopped,
}
