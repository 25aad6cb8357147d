//! The tests of this crate in one program, with a module for each file, because linking is most of
//! the cost of a small test. Run some with `--test all MODULE::`. A test that needs a separate
//! process is a separate program, named in Cargo.toml.

mod common;

mod capture;
mod kinds;
mod links;
mod outside;
mod routes;
mod stepwise;
mod wifi_models;
mod wireless;
mod wireless_ahead;
mod worlds;
