//! QUIC (RFC 9000) for comparison: the unmodified crate `quinn-proto` with the transport interface
//! of this project.
//!
//! A connection is a function of its configuration, its seed and its inputs. Time is an argument;
//! connection identifiers, the order of transport parameters and skipped packet numbers are derived
//! from the seed. TLS is replaced by a handshake with the same flights and similar lengths, but
//! without secrets: null keys, and a checksum instead of each AEAD tag. This suffices, because
//! simulations need only correct packet lengths and detection of damaged packets.
//!
//! BBR of `quinn-proto` is not offered, because it chooses the phase of its gain cycle by random
//! numbers of the operating system. Runs with it could not be repeated.
#![forbid(unsafe_code)]

mod config;
mod connection;
mod ids;
mod null_crypto;

pub use config::{Config, Congestion};
pub use connection::{Connection, Event, Stats};
