//! TCP with SACK as a sans-IO state machine with the same driver interface as SCTP.
//!
//! A [`Connection`] is one end of one connection. The driver must follow the loop of
//! [`anabranch_transport`]: it calls one `handle_*` or user method, and then
//! [`Transport::poll_transmit`](anabranch_transport::Transport::poll_transmit) and
//! [`Connection::poll_event`] until they return `None`, and then
//! [`Transport::poll_timeout`](anabranch_transport::Transport::poll_timeout). An application should
//! read before the driver polls for segments, because those segments advertise the window.
//!
//! Data, not code, selects the TCP variant: a [`Profile`] with its switches.
#![forbid(unsafe_code)]
#![warn(missing_debug_implementations, unnameable_types, unreachable_pub)]
#![warn(clippy::use_self)]

mod config;
mod connection;
mod control;
mod event;
pub mod profile;
mod rx;
mod state;
mod stats;
mod time;
mod tx;

pub use config::Config;
pub use connection::{Connection, Ports, WriteError};
pub use event::{Event, Failure};
pub use profile::Profile;
pub use state::State;
pub use stats::{DroppedSegments, Stats};
