//! Sans-IO implementation of SCTP (RFC 9260), with its predecessors and variants as named profiles.
//!
//! An [`Endpoint`] is one port with all its associations and implements
//! [`Transport`](anabranch_transport::Transport) for its driver; an [`Association`] is the
//! interface for the user.
//!
//! - control: [`Endpoint`] and [`Association`] with handshake, shutdown and heartbeat
//! - data transfer: sender ([`tx`]), receiver ([`rx`]), state of each peer address ([`path`])
//! - settings: [`config`], [`profile`]
//!
//! # A driver
//! An endpoint does no I/O and reads no clock. Its driver passes packets and the time to it, and
//! polls packets, events and deadlines, in the order described at [`Endpoint`]. Here the driver is
//! a loop around two endpoints and a network with a delay of 10 ms. The network loses the first
//! packet, an INIT, which is retransmitted when T1-init expires.
//!
//! ```
//! use std::collections::VecDeque;
//! use std::net::IpAddr;
//!
//! use anabranch_sctp::{Config, Endpoint, Interest, Output, SendOptions};
//! use anabranch_transport::time::{MILLISECOND, SECOND};
//! use anabranch_transport::{Ecn, Nanos, Path, Transport};
//! use bytes::{Bytes, BytesMut};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let address = |host: u8| IpAddr::from([192, 0, 2, host]);
//! let endpoint = |host: u8| {
//!     let config = Config::default().with(|it| it.addresses = vec![address(host)]);
//!     // The seed of cookies and tags must be secret and random in a real program.
//!     Endpoint::new(config, 5_000, [host; 32])
//! };
//! let mut hosts = [endpoint(1)?, endpoint(2)?];
//! let mut now: Nanos = 0;
//! hosts[1].listen(true);
//! let id = hosts[0].connect(now, &[address(2)], 5_000)?;
//! let association = hosts[0].association_mut(id).ok_or("gone")?;
//! association.send(now, "hello".into(), &SendOptions::on(3))?;
//!
//! // Packets in flight: arrival time, host, path, bytes.
//! let mut network: VecDeque<(Nanos, usize, Path, Bytes)> = VecDeque::new();
//! let (mut out, mut sent, mut received) = (BytesMut::new(), 0, None);
//! while received.is_none() {
//!     for (number, host) in hosts.iter_mut().enumerate() {
//!         // Packets first, then output for the user.
//!         while let Some(transmit) = host.poll_transmit(now, &mut out) {
//!             let packet = out.split().freeze();
//!             if sent > 0 {
//!                 let arrives = now + 10 * MILLISECOND;
//!                 network.push_back((arrives, 1 - number, transmit.path.reversed(), packet));
//!             }
//!             sent += 1;
//!         }
//!         while let Some((_, association)) = host.poll_ready() {
//!             while let Some(output) = association.poll_output(Interest::MESSAGES) {
//!                 if let Output::Message(message) = output {
//!                     received = Some(message);
//!                 }
//!             }
//!         }
//!     }
//!     // Next step: the arrival of a packet, or the expiration of a timer.
//!     let arrival = network.front().map(|it| it.0);
//!     let timeouts = hosts.iter().filter_map(Transport::poll_timeout);
//!     now = timeouts.chain(arrival).min().ok_or("nothing will happen")?.max(now);
//!     if arrival.is_some_and(|at| at <= now)
//!         && let Some((_, to, path, packet)) = network.pop_front()
//!     {
//!         hosts[to].handle_datagram(now, path, Ecn::NotEct, packet);
//!     }
//!     for host in &mut hosts {
//!         if host.poll_timeout().is_some_and(|at| at <= now) {
//!             host.handle_timeout(now);
//!         }
//!     }
//! }
//! let message = received.ok_or("no message")?;
//! assert_eq!((message.stream, &message.payload.into_bytes()[..]), (3, &b"hello"[..]));
//! assert!(now > SECOND, "T1-init has expired, which is RTO.Initial: one second");
//! # Ok(())
//! # }
//! ```
//!
//! # Associations on other threads
//! [`Endpoint::detach`] gives an established association to the driver as a
//! [`DetachedAssociation`], which is [`Send`]. From then on, the endpoint only forwards packets of
//! the peer to the detached association ([`Endpoint::poll_association_event`]), and receives
//! changes of its tags and addresses ([`Endpoint::handle_endpoint_event`]).
#![forbid(unsafe_code)]
#![warn(missing_debug_implementations, unnameable_types)]

mod address;
mod asconf;
mod association;
mod association_id;
mod association_state;
mod authentication;
mod compact_option;
pub mod config;
mod control_retransmission;
mod cookie;
mod discard;
mod dtls_chunk;
mod dynamic_settings;
mod endpoint;
mod error;
mod event;
mod event_queue;
mod extension_descriptor;
mod extensions;
mod fast_path;
mod handshake;
mod icmp;
mod interleaving;
mod lazy_box;
pub mod mtu;
mod output;
pub mod path;
mod pr_sctp;
pub mod profile;
mod random;
mod reconfig;
mod rsctp;
pub mod rx;
mod send_options;
mod shrinking_queue;
mod state;
pub mod stats;
pub mod stream_allocation;
mod stream_scheduler;
mod stream_set;
mod stream_table;
#[cfg(test)]
mod test_rng;
mod timer;
mod transmit;
pub mod tx;
#[doc(hidden)]
pub mod work_counter;
mod zero_checksum;

pub use anabranch_dtls as dtls;

pub use asconf::{AddressChange, AddressChangeError, AddressChangeOutcome};
pub use association::{
    Association, AssociationStatus, Negotiated, Protection, ProtectionMut, SendBuffer,
};
pub use association_id::AssociationId;
pub use association_state::AssociationState;
pub use authentication::{AuthHmac, Authentication, ChunkTypes, KeyError, SharedKeys};
pub use config::{CheckedConfig, Config, ConfigError, ZeroChecksum};
pub use discard::{DiscardCounts, DiscardReason};
pub use dtls_chunk::{
    DTLS_OVERHEAD, DtlsStatistics, KeyAgreement, KeyMethods, RestartKeys, Security,
};
pub use dynamic_settings::{AssociationSettings, DynamicSettingError, PathSettings};
pub use endpoint::{
    AssociationEvent, ConnectOptions, DetachError, DetachedAssociation, Endpoint, EndpointEvent,
    Incoming, IncomingGone, Recipient, Refusal, ShardPeers,
};
pub use error::{CloseError, ConnectError};
pub use event::{CloseReason, Event, UndeliveredCause, UndeliveredMessage, Violation};
pub use icmp::Icmp;
pub use output::{Interest, Output};
pub use path::{PathId, PathState};
pub use pr_sctp::{AbandonPolicy, AbandonedCount, AbandonedMessage, SendOptions};
pub use profile::Profile;
pub use reconfig::{ReconfigError, ReconfigOutcome, Reconfiguration, StreamDirection};
pub use rx::{MessageBytes, ReceivedMessage, ReceivedPart};
pub use transmit::{TransmitOptions, UdpTransmit};
pub use tx::{DeliveryStatus, SendError};
