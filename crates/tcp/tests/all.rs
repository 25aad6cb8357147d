//! All tests of this crate in one program with a module per file, because linking is the main cost
//! of a small test. `--test all MODULE::` runs one module. A test that needs a separate process is
//! a separate program, listed in Cargo.toml.

mod common;

mod accurate_ecn;
mod accurate_ecn_acks;
mod accurate_ecn_runs;
mod acknowledging;
mod connection;
mod dctcp;
mod ecn;
mod fast_path;
mod ns2;
mod pacing;
mod properties;
mod rack;
mod recovery;
mod spurious;
