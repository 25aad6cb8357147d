//! SCTP on real sockets, with the code that the simulator runs.
//!
//! [`Endpoint`] is one SCTP port; [`Association`] is a connection. Both types are handles: clones
//! may be used from any number of tasks. One task owns the sockets, and drives the endpoints and
//! their associations.
//!
//! ```no_run
//! use anabranch_net::{Config, Endpoint, SendOptions};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! // A server: SCTP port 5001, packets inside UDP on port 9899 (RFC 6951).
//! let server = Endpoint::bind(Config::server(5001))?;
//! tokio::spawn(async move {
//!     // Until the endpoint is closed.
//!     while let Ok(association) = server.accept().await {
//!         tokio::spawn(async move {
//!             while let Ok(Some(message)) = association.recv().await {
//!                 let options = SendOptions::default().with_ppid(message.ppid);
//!                 let options = options.with_stream(Some(message.stream));
//!                 if association.send(message.bytes, options).await.is_err() {
//!                     break;
//!                 }
//!             }
//!         });
//!     }
//! });
//!
//! // A client. It waits 30 s at most (`Config::connect_timeout`).
//! let client = Endpoint::bind(Config::default())?;
//! let association = client.connect(("localhost", 5001)).await?;
//! association.send("hello", SendOptions::default()).await?; // on stream 0
//! let echo = association.recv().await?; // `None`: the peer has closed
//! association.shutdown().await?; // everything sent has arrived
//! # Ok(())
//! # }
//! ```
//!
//! # Overview
//!
//! | task | see |
//! |---|---|
//! | connecting by address, by name, to several addresses | [`Endpoint::connect`], [`Peer`] |
//! | limits, resolvers | [`Endpoint::connect_with`], [`ConnectOptions`] |
//! | connecting again when an association ends | [`ReconnectingClient`], [`ReconnectPolicy`] |
//! | selecting, refusing and redirecting peers | [`Endpoint::incoming`], [`Incoming`] |
//! | unordered and partially reliable messages | [`SendOptions`] |
//! | one stream in two tasks, or as bytes | [`Association::stream`], [`Association::byte_stream`] |
//! | messages that are too large to buffer | [`Association::recv_part`] |
//! | confirmation that the peer has a message | [`Association::send_with_receipt`], [`Receipt`] |
//! | several paths, failover | [`Config::addresses`], [`Event`], [`Status::paths`] |
//! | timers, buffers, congestion control | [`Config::with_timers`], [`Config::sctp`] |
//! | settings of an established association | [`AssociationSettings`], [`PathSettings`] |
//! | starting from a saved capacity | [`Config::resume_cache`], [`ResumeCache`] |
//! | shared sockets; an observer | [`Endpoint::bind_with`], [`SharedSockets`] |
//! | several threads | [`Shard`] |
//!
//! The examples `diameter` (a server, and a client that connects again) and `failover` (a sender
//! with two paths) are good starting points. `docs/NET.md` is the manual.
//!
//! # Runtimes
//!
//! The task of the sockets runs on tokio (the feature `tokio`, on by default), smol (the feature
//! `smol`), the program's own thread (`ThreadRuntime`, the feature `thread`, on Linux), or another
//! [`Runtime`] ([`Config::runtime`]). The futures of this crate may be polled by any executor.
//!
//! ```no_run
//! # #[cfg(feature = "smol")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//!
//! use anabranch_net::{Config, Endpoint, SendOptions, SmolRuntime};
//!
//! smol::block_on(async {
//!     let config = Config::default().with(|it| it.runtime = Some(Arc::new(SmolRuntime)));
//!     let client = Endpoint::bind(config)?;
//!     let association = client.connect(([127, 0, 0, 1], 5001)).await?;
//!     // The receipt is ready when the peer has the message.
//!     let receipt = association.send_with_receipt("hello", SendOptions::default());
//!     receipt.await?.await?;
//!     association.shutdown().await?;
//!     Ok(())
//! })
//! # }
//! # #[cfg(not(feature = "smol"))]
//! # fn main() {}
//! ```
//!
//! # Performance
//!
//! On tokio, a program should send and receive in spawned tasks. The future that a multi-threaded
//! tokio runtime blocks on (the body of `async fn main`) runs on a separate thread, so that each
//! message is passed between threads and the throughput of an association is halved. An endpoint
//! has one task for its sockets, and therefore uses one core; [`Shard`]s distribute a port over
//! several cores. If a program needs no async runtime for other purposes, `ThreadRuntime` is
//! fastest.
//!
//! # Carriers
//!
//! Packets travel over one of three carriers ([`Carrier`]): UDP encapsulation, plain UDP between
//! two fixed ports, and raw IP. A program without a runtime, or with its own sockets, can drive
//! [`anabranch_sctp::Endpoint`] directly: `examples/without_tokio.rs` is a short example, and
//! `examples/association_threads.rs` uses a thread for each association.
//!
//! # Cancel safety
//!
//! Every future of this crate may be dropped at any await point. Methods document the effect of
//! dropping their future: for example [`Endpoint::connect`] aborts the attempt, and
//! [`Association::shutdown`] continues to close.
#![forbid(unsafe_code)]
#![warn(missing_debug_implementations, unnameable_types, unreachable_pub)]
#![warn(clippy::use_self)]

mod association;
mod clock;
mod config;
mod deferred_wakeups;
mod driver;
mod driver_shared;
mod driver_timer;
mod endpoint;
mod endpoint_driver;
mod endpoint_set;
mod endpoint_state;
mod error;
mod event;
mod happy_eyeballs;
mod io;
mod message;
mod observer;
mod peer;
mod port_reservation;
mod random;
mod receipt;
mod receive_buffers;
mod receive_queue;
mod reconnect;
mod redirect;
mod resume;
#[cfg(feature = "rfc6083")]
pub mod rfc6083;
mod runtime;
mod security;
mod settings;
mod shard;
mod shard_group;
mod shard_peers;
mod shared_sockets;
mod socket;
mod socket_backoff;
mod socket_errors;
mod status;
mod streams;
mod time;
mod transmit_queue;
mod waiters;

pub use anabranch_sctp::{
    self as sctp, AbandonPolicy, AddressChange, AddressChangeError, AddressChangeOutcome,
    CloseReason, DynamicSettingError, Event, KeyError, Negotiated, PathState, ReconfigError,
    ReconfigOutcome, Reconfiguration, Refusal, SendOptions, SharedKeys, StreamDirection,
    UndeliveredCause,
};
pub use association::{Association, Output};
pub use config::{Carrier, Config, ENCAPSULATION_PORT};
pub use endpoint::{BacklogPermit, BindOptions, ConnectOptions, Endpoint, Incoming};
pub use error::{
    AcceptError, AddressError, AssociationError, BindError, ConnectError, SendError, SinkError,
    TrySendError,
};
pub use happy_eyeballs::{HappyEyeballsTiming, Resolve, ResolverStream, SystemResolver};
pub use message::{Message, MessagePart};
pub use observer::{Direction, ObservedPacket, Observer};
pub use peer::Peer;
pub use random::dynamic_port;
pub use receipt::{DeliveryError, Receipt};
pub use reconnect::{ConnectionFailure, ReconnectEvent, ReconnectPolicy, ReconnectingClient};
pub use resume::{ResumeCache, ResumePhase, SavedPath, SavedPathError};
#[cfg(feature = "smol")]
pub use runtime::SmolRuntime;
#[cfg(feature = "tokio")]
pub use runtime::TokioRuntime;
pub use runtime::{AsyncSocket, Readiness, ReadinessHint, Runtime, Timer};
#[cfg(all(feature = "thread", target_os = "linux"))]
pub use runtime::{JoinError, JoinHandle, ThreadRuntime, ThreadSpawner};
pub use settings::{AssociationSettings, PathSettings, Timers};
pub use shard::Shard;
pub use shared_sockets::SharedSockets;
pub use socket::{OutgoingPacket, PacketSocket, ReceivedPacket};
pub use socket_errors::{SocketError, SocketOperation};
pub use status::{EndpointStatistics, PathStatus, Status};
pub use streams::{ByteStream, Messages, RecvStream, SendStream};
