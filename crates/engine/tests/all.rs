//! All tests of this crate as modules of one program, because linking is most of the cost of a
//! small test. `--test all MODULE::` runs the tests of one module. A test is a separate program,
//! named in Cargo.toml, if it needs a separate process or if a page of docs/ is generated from its
//! snapshots.

mod constellation;
mod divided_routes;
mod documents;
mod dvb_rcs2;
mod ecn;
mod effects;
mod examples;
mod extending;
mod ground;
mod hears;
mod link_paths;
mod links;
mod own_kinds;
mod points;
mod proxies;
mod questions;
mod quic;
mod races;
mod renamed;
mod resume;
mod third_party;
mod transport_settings;
mod validation;
