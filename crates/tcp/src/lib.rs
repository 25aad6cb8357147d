//! TCP with SACK without I/O, under the same driver contract as SCTP.
//!
//! A [`Connection`] is one end of one connection. It is driven by the loop law of [`anabranch_transport`]: one `handle_*`
//! or user method, then [`Transport::poll_transmit`](anabranch_transport::Transport::poll_transmit) and
//! [`Connection::poll_event`] until they give `None`, then
//! [`Transport::poll_timeout`](anabranch_transport::Transport::poll_timeout). An application that reads should read before
//! segments are drained, so that the window they advertise knows of it.
//!
//! Which TCP it is, is data: a [`Profile`] with its switches.
#![forbid(unsafe_code)]

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
pub use stats::{Dropped, Stats};
