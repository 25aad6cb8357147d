//! SCTP without I/O: RFC 9260, and the departures from it as named profiles.
//!
//! An [`Endpoint`] is one port with all its associations and speaks
//! [`Transport`](anabranch_transport::Transport) to its driver; an [`Association`] is what its user holds.
//!
//! - control: [`Endpoint`] and [`Association`], handshake with a signed cookie, shutdown, heartbeat
//! - data out: [`tx`]; data in: [`rx`]; what is known of each address: [`path`]
//! - settings: [`config`], [`profile`]
#![forbid(unsafe_code)]

mod address;
mod address_changes;
pub mod allocation;
mod association;
mod association_id;
mod authentication;
pub mod config;
mod cookie;
mod discard;
#[cfg(test)]
mod draws;
mod endpoint;
mod error;
mod event;
mod event_queue;
mod extension;
mod extensions;
mod handshake;
mod icmp;
mod interleaving;
mod maybe;
pub mod mtu;
mod outgoing;
mod output;
mod partial;
pub mod path;
pub mod profile;
mod queue;
mod random;
mod reconfig;
mod retry;
mod rsctp;
mod runtime;
pub mod rx;
mod scheduling;
mod seldom;
mod state;
mod state_name;
pub mod stats;
mod stream_set;
mod stream_table;
mod timer;
pub mod tx;
mod uncommon;
#[doc(hidden)]
pub mod work;
mod zero_checksum;

pub use address_changes::{AddressChange, AddressChangeError, AddressChangeOutcome};
pub use association::{Association, AssociationStatus, Negotiated};
pub use association_id::AssociationId;
pub use authentication::{AuthHmac, Authentication, ChunkTypes, KeyError, SharedKeys};
pub use config::{CheckedConfig, Config, ConfigError, ZeroChecksum};
pub use discard::{Discard, Discards};
pub use endpoint::{Endpoint, Gone, Incoming, Recipient, Refusal, ShardPeers};
pub use error::{CloseError, ConnectError};
pub use event::{CloseReason, Event, UndeliveredCause, UndeliveredMessage, Violation};
pub use icmp::Icmp;
pub use outgoing::{Outgoing, TransmitOptions};
pub use output::{Interest, Output};
pub use partial::{AbandonPolicy, AbandonedCount, AbandonedMessage, SendOptions};
pub use path::{PathId, PathState};
pub use profile::Profile;
pub use reconfig::{ReconfigError, ReconfigOutcome, Reconfiguration, StreamDirection};
pub use runtime::{AssociationSettings, PathSettings, RuntimeError};
pub use rx::{MessageBytes, ReceivedMessage, ReceivedPart};
pub use state_name::StateName;
pub use tx::{Delivery, SendError};
