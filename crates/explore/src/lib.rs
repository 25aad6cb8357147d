//! `anabranch explore`: one page on loopback with a spec's values as sliders, and its run drawn as it is computed.
//!
//! The page never holds a result of its own: whatever it shows is a spec ([`subject`]) run into a sink ([`run`]), and the spec can be
//! taken away and run by `anabranch run`. [`server`] hands out the page, to whoever has the token ([`access`]).
#![forbid(unsafe_code)]

mod access;
mod choices;
mod door;
mod knobs;
mod ladder;
mod outlet;
mod run;
mod samples;
mod server;
mod stops;
mod subject;
mod thin;

pub use access::Token;
pub use door::{Admission, Door, Visitor};
pub use server::Server;
pub use subject::{Source, Subject};
