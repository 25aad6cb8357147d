//! Third-party SCTP stacks for comparison: the unmodified crates `dcsctp`, `rtc-sctp` and
//! `sctp-proto` with the transport interface of this project.
//!
//! A [`Connection`] is a function of its configuration, its seed and its inputs. Time is an
//! argument. The stacks draw tags, initial TSNs and cookies from the operating system. These values
//! should not differ between runs. They are therefore replaced by numbers derived from the seed in
//! sent packets, and restored in received packets. Two runs with the same seed thus have identical
//! packets. Apart from these values, only the ports and the checksum are changed.
//!
//! Each stack has a file, a feature of the same name, and a line in [`STACKS`]. The list also has
//! the stacks that were not compiled in, because errors should name the missing feature.
#![forbid(unsafe_code)]

mod adapter;
mod config;
mod connection;
mod event;
mod stack;
mod tag_rewrite;
mod tsn_seen;

#[cfg(feature = "dcsctp")]
mod dcsctp;
#[cfg(feature = "rtc-sctp")]
mod rtc_sctp;
#[cfg(feature = "sctp-proto")]
mod sctp_proto;

pub use adapter::StackState;
pub use config::Config;
pub use connection::{Connection, Outside};
pub use event::Event;
pub use stack::{DCSCTP, RTC_SCTP, SCTP_PROTO, STACKS, Stack};
