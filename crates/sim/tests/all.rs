//! All tests of this crate as modules of one program, because linking is most of the cost of a
//! small test. `--test all MODULE::` runs the tests of one module. A test that needs a separate
//! process is a separate program, named in Cargo.toml.

mod common;

mod capture;
mod division;
mod event_driven;
mod external;
mod kinds;
mod links;
mod routes;
mod wifi_models;
mod wireless;
mod wireless_lookahead;
mod worlds;
