//! Error types.

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
    /// Another endpoint on the same sockets has that SCTP port, at one of the addresses or at all
    /// addresses.
    #[error(
        "SCTP port {0} is taken by another endpoint on the same sockets; endpoints with one port have addresses of their own each"
    )]
    PortTaken(u16),
    /// Endpoints on the same sockets use all SCTP ports of the dynamic range (RFC 6335 §6).
    #[error("no SCTP port is free: endpoints on the same sockets have all from 49152 to 65535")]
    NoFreePort,
    /// The task of the sockets ended, together with its runtime.
    #[error("the task of these sockets is gone")]
    Stopped,
    /// A setting cannot be used.
    #[error("{0}")]
    Config(String),
    /// The system gave no random bytes, which all secrets require.
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
    /// The peer's address or port cannot be used.
    #[error(transparent)]
    Refused(#[from] anabranch_sctp::ConnectError),
    /// No socket of this endpoint reaches the peer's address.
    #[error("no socket of this endpoint is of the family of {0}")]
    Family(IpAddr),
    /// Neither the peer nor the carrier names a UDP port.
    #[error("the peer's UDP port is not known: name it in the Peer, or in Carrier::Encapsulated")]
    NoUdpPort,
    /// The peer refuses, and names another to connect to in its place
    /// ([`Incoming::redirect`](crate::Incoming::redirect)). The named peer is not verified: the
    /// caller must decide whether to trust the new peer, and how many redirections to follow.
    #[error("the peer redirects to {0}")]
    Redirected(Peer),
    /// A name could not be resolved, or has no address of a family that this endpoint has sockets
    /// of.
    #[error("cannot resolve {name}: {why}")]
    Name {
        /// The name.
        name: String,
        /// The error of the resolver.
        why: String,
    },
    /// The attempt failed.
    #[error(transparent)]
    Association(#[from] AssociationError),
}

impl ConnectError {
    /// Like [`CloseReason::is_port_collision`]: an endpoint with another SCTP port can connect.
    pub fn is_port_collision(&self) -> bool {
        matches!(self, Self::Association(AssociationError(reason)) if reason.is_port_collision())
    }
}

/// Why an association did not end by a graceful shutdown.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the association ended: {}", words(.0))]
pub struct AssociationError(
    /// The reason of the protocol.
    pub CloseReason,
);

fn words(reason: &CloseReason) -> String {
    let setting = match reason {
        CloseReason::MessageTooLong { .. } => " (max_message_size)",
        _ => "",
    };
    format!("{reason}{setting}")
}

/// Why an association's addresses do not change.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum AddressError {
    /// No socket can be opened for the address.
    #[error(transparent)]
    Socket(Arc<BindError>),
    /// The association cannot have the change.
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
        /// The requested stream.
        stream: u16,
        /// Streams negotiated.
        streams: u16,
    },
    /// DATA must carry at least one byte (RFC 9260 §3.3.1).
    #[error("a message must not be empty")]
    Empty,
    /// Larger than [`Config::max_message_size`](crate::Config::max_message_size).
    #[error("a message of {size} bytes is larger than max_message_size, {most} bytes")]
    TooLarge {
        /// Size.
        size: usize,
        /// The maximum.
        most: usize,
    },
    /// The association is closing or closed.
    #[error("the association is closing or closed")]
    Closing,
    /// Another reason of the protocol.
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
    /// A message was not accepted.
    #[error(transparent)]
    Send(#[from] SendError),
    /// `start_send` was called before `poll_ready` was ready; the message was not accepted.
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
    /// The endpoint does not accept associations.
    #[error(
        "the endpoint does not listen: set Config::accept, as Config::server does, or call Endpoint::listen"
    )]
    NotListening,
    /// [`Endpoint::close`](crate::Endpoint::close), [`drain`](crate::Endpoint::drain) or
    /// [`refuse`](crate::Endpoint::refuse) was called.
    #[error("the endpoint is closed and accepts no more associations")]
    Closed,
    /// The peer restarted meanwhile, or waited longer than its cookie is valid
    /// (`sctp.valid_cookie_life`, 60 s; RFC 9260 §5.2.6); or there are
    /// [`Config::max_associations`](crate::Config::max_associations).
    #[error("the peer that waited to be accepted is gone, or there are max_associations")]
    Gone,
    /// The endpoint's task has ended.
    #[error("the endpoint's task is gone")]
    Stopped,
}
