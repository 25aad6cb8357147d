//! All tests of this crate in one program, one module per file, because linking takes most of the
//! time of a small test. `--test all MODULE::` runs one module. A test that needs a separate
//! process is a separate program, listed in Cargo.toml.

mod common;
mod world;

mod connections;
mod interleaving;
mod malicious_peer;
mod partial;
mod peer_connection;
mod spoofed_dtls;
