//! WebRTC data channels for servers: the Data Channel Establishment Protocol (RFC 8832) and the
//! rules of RFC 8831 over an association of [`anabranch_sctp`], inside DTLS (RFC 8261), with ICE
//! lite (RFC 8445). Media is out of scope.
//!
//! [`Connection`] is the sans-I/O core, without sockets or clocks: datagrams and time are passed
//! in; datagrams and events are polled. [`PeerConnection`] runs it on tokio with its own UDP
//! socket:
//!
//! ```no_run
//! use anabranch_datachannel::{Config, PeerConnection};
//!
//! # async fn run(offer: &str) -> Result<(), Box<dyn std::error::Error>> {
//! let (peer, answer) = PeerConnection::accept(offer, Config::default()).await?;
//! println!("{answer}"); // for the browser
//! while let Some(channel) = peer.incoming().await {
//!     tokio::spawn(async move {
//!         while let Some(message) = channel.recv().await {
//!             if channel.send(message).await.is_err() {
//!                 break;
//!             }
//!         }
//!     });
//! }
//! # Ok(())
//! # }
//! ```
//!
//! `docs/DATACHANNEL.md` lists supported and missing features.
#![forbid(unsafe_code)]
#![warn(missing_debug_implementations, unnameable_types, unreachable_pub)]
#![warn(clippy::use_self)]

mod channel;
pub mod channels;
mod close;
mod config;
mod connection;
pub mod dcep;
mod discard;
mod dtls;
mod fingerprint;
mod ice;
mod identity;
mod peer;
pub mod sctp_transport;
pub mod sdp;

pub use channel::{ChannelId, ChannelOptions, Payload, Reliability};
pub use channels::{OpenError, SendError};
pub use close::Closed;
pub use config::Config;
pub use connection::{AcceptError, Connection, Event, RandomSeed};
pub use discard::{DiscardCounts, DiscardReason};
pub use fingerprint::Fingerprint;
pub use identity::{Identity, IdentityError};
pub use peer::{BindError, DataChannel, PeerConnection};
