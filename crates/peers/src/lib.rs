//! Other people's SCTP for comparison: the crates `dcsctp`, `rtc-sctp` and `sctp-proto`, unmodified, behind the contract of this
//! project's transports.
//!
//! A [`Connection`] is a function of its configuration, its seed and what is handed to it. Time is an argument. The stacks draw tags,
//! first TSNs and cookies from the operating system; on their way out these are replaced by numbers of the seed, and put back on their
//! way in ([`translate`](crate)), so that the packets of two runs are the same byte by byte. No other bytes are changed, but for the
//! ports and the checksum.
//!
//! Each stack is a file here behind a feature of its name, and a line in [`STACKS`]. One that was not compiled in is known by name, so
//! that an error can say which feature is missing.
#![forbid(unsafe_code)]

mod config;
mod connection;
mod end;
mod event;
mod receipts;
mod stack;
mod translate;

#[cfg(feature = "dcsctp")]
mod dcsctp;
#[cfg(feature = "rtc-sctp")]
mod rtc_sctp;
#[cfg(feature = "sctp-proto")]
mod sctp_proto;

pub use config::Config;
pub use connection::{Connection, Outside};
pub use end::Facts;
pub use event::Event;
pub use stack::{DCSCTP, RTC_SCTP, SCTP_PROTO, STACKS, Stack};
