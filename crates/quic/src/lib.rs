//! QUIC (RFC 9000) for comparison: the crate `quinn-proto`, unmodified, behind the contract of this project's transports.
//!
//! A connection is a function of its configuration, its seed and what is handed to it. Time is an argument; connection identifiers,
//! the order of transport parameters and skipped packet numbers come from the seed. In place of TLS stands a handshake of the same
//! flights and about the same lengths, which keeps no secrets ([`null`](crate) keys, a checksum in place of each AEAD tag): what
//! simulations need is that packets have their lengths, and that damaged ones are discarded.
//!
//! quinn's BBR is not offered: it draws the phase of its gain cycle from the operating system's randomness, so that no run of it
//! could be repeated.
#![forbid(unsafe_code)]

mod config;
mod connection;
mod ids;
mod null;

pub use config::{Config, Congestion};
pub use connection::{Connection, Event, Stats};
