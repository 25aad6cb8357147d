//! The tests of this crate in one program, a module for each file: linking is most of what a small
//! test costs. Run some by `--test all MODULE::`. A test that needs a process of its own, or whose
//! snapshots a page of docs/ is made of, is a program of its own, named in Cargo.toml.

mod constellation;
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
