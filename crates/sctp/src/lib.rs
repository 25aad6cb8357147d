//! SCTP without I/O: RFC 9260, and the departures from it as named profiles
#![forbid(unsafe_code)]

pub mod config;
pub mod path;
pub mod profile;
pub mod rx;
mod stream_table;
pub mod tx;
