//! The tests of this crate in one program, a module for each file, because linking is most of the
//! cost of a small test. To run the tests of one file, use `--test all MODULE::`. A test that needs
//! a separate process is a separate program, listed in Cargo.toml.

mod common;

mod addresses;
mod at_once;
mod attempts;
mod backlog;
mod batches;
mod broken;
mod carriers;
mod clients;
mod closing;
mod concurrent;
mod examples;
mod groups;
mod happy_eyeballs;
mod hostile_wakers;
mod icmp;
mod incoming;
mod loopback;
mod outputs;
mod packet_socket;
mod receipts;
mod resume;
mod rfc6083;
mod runtimes;
mod security;
mod settings;
mod shards;
mod shared;
mod streams;
