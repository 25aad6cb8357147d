//! The tests of this crate in one program, with a module for each file, because linking is most of
//! the cost of a small test. Run some with `--test all MODULE::`. A test that needs a separate
//! process is a separate program, named in Cargo.toml.

mod common;

mod capture;
mod event_driven;
mod external;
mod kinds;
mod links;
mod routes;
mod wifi_models;
mod wireless;
mod wireless_lookahead;
mod worlds;
