//! The tests of this crate in one program, a module for each file: linking is most of what a small test costs.
//! Run some by `--test all MODULE::`. A test that needs a process of its own is a program of its own, named in Cargo.toml.

mod common;

mod acknowledging;
mod connection;
mod dctcp;
mod ecn;
mod fast_path;
mod ns2;
mod pacing;
mod rack;
mod recovery;
mod spurious;
