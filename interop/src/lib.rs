//! Interoperability tests of this stack with other SCTP stacks over real sockets.
//!
//! Every peer is a program with the same command line and output protocol ([`peer`]). Each peer
//! sends and checks the same messages ([`workload`]) in both directions at once, and prints its
//! progress on standard output. A [`case`] starts two peers in a separate network namespace,
//! optionally with a [`relay`] between them that loses and reorders packets, or with a [`guest`]
//! behind two TAP interfaces, and waits until both have received everything and closed gracefully.

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
