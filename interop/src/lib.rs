//! Interoperability tests of this stack with other SCTP stacks over real sockets.
//!
//! All peer programs have the same command line and output protocol ([`peer`]). Each peer sends and
//! checks the same messages ([`workload`]) in both directions at once, and prints its progress on
//! standard output. A [`case`] starts two peers in a separate network namespace. Between them there
//! may be a [`relay`] that loses and reorders packets; one peer may be a [`guest`] behind two TAP
//! interfaces. The case waits until both peers have received all messages and closed gracefully.

pub mod capture;
pub mod case;
pub mod extension;
pub mod guest;
pub mod namespace;
pub mod peer;
pub mod programs;
pub mod relay;
pub mod skips;
pub mod workload;
