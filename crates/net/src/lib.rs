//! SCTP on real sockets, with the very code that the simulator runs.
//!
//! [`Endpoint`] is one SCTP port; [`Association`] is what its user holds. Both are driven by one task that owns the sockets,
//! and may be used from any number of tasks. Several endpoints may share their sockets, and the task ([`SharedSockets`]).
//!
//! ```no_run
//! use anabranch_net::{Config, Endpoint, SendOptions};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! // A server: SCTP port 5001, packets inside UDP on port 9899 (RFC 6951).
//! let server = Endpoint::bind(Config::server(5001))?;
//! tokio::spawn(async move {
//!     while let Ok(association) = server.accept().await {
//!         tokio::spawn(async move {
//!             while let Ok(Some(message)) = association.recv().await {
//!                 let options = SendOptions::default()
//!                     .with_ppid(message.ppid)
//!                     .with_unordered(message.unordered);
//!                 if association.send(message.stream, message.bytes, options).await.is_err() {
//!                     break;
//!                 }
//!             }
//!         });
//!     }
//! });
//!
//! // A client.
//! let client = Endpoint::bind(Config::default())?;
//! let association = client.connect(([127, 0, 0, 1], 5001)).await?;
//! association.send(0, "hello", SendOptions::default()).await?;
//! let echo = association.recv().await?;
//! association.shutdown().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Runtimes
//!
//! The task of the sockets lives on tokio (the feature `tokio`, on by default), smol (the feature `smol`), the program's own thread
//! (`ThreadRuntime`, the feature `thread`, on Linux), or a [`Runtime`] of one's own ([`Config::runtime`]); all futures may be polled by any executor.
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
//!     // The receipt tells when the peer has it.
//!     association.send_for_receipt(0, "hello", SendOptions::default()).await?.await?;
//!     association.shutdown().await?;
//!     Ok(())
//! })
//! # }
//! # #[cfg(not(feature = "smol"))]
//! # fn main() {}
//! ```
//!
//! # Speed
//!
//! On tokio, send and receive in tasks. What a tokio runtime of several threads blocks on (the body of `async fn main`) has a thread of its own, each message changes
//! threads there, and an association carries half as much. An endpoint has one task for its sockets, and uses one core; several [`Shard`]s use several. A program that has no other use for an async runtime is fastest on a `ThreadRuntime`.
//!
//! # Carriers
//!
//! Three carriers take packets to the peer ([`Carrier`]): UDP encapsulation, plain UDP between two fixed ports, and raw IP.
//! Without a runtime, or with sockets of your own, drive [`anabranch_sctp::Endpoint`] yourself: `examples/without_tokio.rs`
//! does so in a page. `docs/NET.md` tells the rest.
//!
//! # Cancel safety
//!
//! Every future of this crate may be dropped at any await point. Where that is not simply "nothing happened", the method
//! says what did: [`Endpoint::connect`] aborts the attempt, [`Association::shutdown`] goes on closing.
#![forbid(unsafe_code)]

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
mod events;
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
mod redirect;
mod runtime;
mod shard;
mod shard_group;
mod shared_sockets;
mod socket;
mod socket_backoff;
mod socket_errors;
mod status;
mod streams;
mod transmit_queue;
mod waiters;

pub use anabranch_sctp::{
    self as sctp, AbandonPolicy, AddressChange, AddressChangeError, AddressChangeOutcome,
    AssociationSettings, CloseReason, KeyError, PathSettings, PathState, ReconfigError,
    ReconfigOutcome, Refusal, RuntimeError, SendDefaults, SendOptions, SharedKeys, StreamDirection,
    UndeliveredCause,
};
pub use association::Association;
pub use config::{Carrier, Config, ENCAPSULATION_PORT};
pub use endpoint::{BacklogPermit, Endpoint, Incoming};
pub use error::{
    AcceptError, AddressError, AssociationError, BindError, ConnectError, SendError, SinkError,
    TrySendError,
};
pub use event::AssociationEvent;
pub use happy_eyeballs::{HappyEyeballsTiming, NamedPeer, Resolve, ResolverStream, SystemResolver};
pub use message::{Message, MessagePart};
pub use observer::{Direction, ObservedPacket, Observer};
pub use peer::Peer;
pub use random::dynamic_port;
pub use receipt::{DeliveryError, Receipt};
#[cfg(feature = "smol")]
pub use runtime::SmolRuntime;
#[cfg(feature = "tokio")]
pub use runtime::TokioRuntime;
pub use runtime::{AsyncSocket, Readiness, ReadinessHint, Runtime, Timer};
#[cfg(all(feature = "thread", target_os = "linux"))]
pub use runtime::{JoinError, JoinHandle, ThreadRuntime, ThreadSpawner};
pub use shard::Shard;
pub use shared_sockets::SharedSockets;
pub use socket::{Packet, PacketSocket, Received};
pub use socket_errors::{SocketError, SocketOperation};
pub use status::{EndpointStatistics, PathStatus, Status};
pub use streams::{ByteStream, MessageSink, Messages};
