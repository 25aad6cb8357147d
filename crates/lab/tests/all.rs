//! The tests of this crate in one program, a module for each file: linking is most of what a small test costs.
//! Run some by `--test all MODULE::`. A test that needs a process of its own, or whose snapshots a page of docs/ is made of, is a program of its own, named in Cargo.toml.

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
