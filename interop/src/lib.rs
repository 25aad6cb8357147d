//! Real SCTP stacks against this one, over real sockets.
//!
//! Every peer is a program with one command line and one protocol ([`peer`]): it sends and checks the same messages
//! ([`workload`]) in both directions at once, and says on its standard output how far it is. A [`case`] puts two peers into
//! a network namespace of its own, perhaps with a [`relay`] between them that loses and reorders, or with a
//! [`guest`] behind two TAP interfaces, and waits until both have received everything and seen a graceful end.

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
