//! The tests of this crate in one program, a module for each file: linking is most of what a small test costs.
//! Run some by `--test all MODULE::`. A test that needs a process of its own is a program of its own, named in Cargo.toml.

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
