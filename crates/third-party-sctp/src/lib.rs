//! Third-party SCTP stacks for comparison: the unmodified crates `dcsctp`, `rtc-sctp` and
//! `sctp-proto` with the transport interface of this project.
//!
//! A [`Connection`] is a function of its configuration, its seed and its inputs. Time is an
//! argument. The stacks draw tags, initial TSNs and cookies from the operating system. These should
//! not differ between runs, so they are replaced in sent packets by numbers derived from the seed,
//! and restored in received packets ([`translate`](crate)). Packets of two runs are therefore
//! identical. No other bytes are changed except the ports and the checksum.
//!
//! Each stack is one file with a feature of the same name, and a line in [`STACKS`]. Stacks that
//! were not compiled in are listed as well, because errors should name the missing feature.
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
