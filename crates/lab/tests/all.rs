//! All tests of this crate in one program with a module per file, because linking is the main cost
//! of a small test. To run one module, use `--test all MODULE::`. A test that needs a separate
//! process, or whose snapshots are part of a page in docs/, is a separate program, listed in
//! Cargo.toml.

mod divided;
mod fingerprint;
mod foreign;
mod joined;
mod journal;
mod multihoming;
mod multistreaming;
mod others;
mod printed;
mod runs;
mod shards;
mod sinks;
