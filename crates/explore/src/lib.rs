//! `anabranch explore`: a local web page that displays the values of a spec as sliders, and its run
//! while it is computed.
//!
//! The page should not store results. It displays a spec ([`subject`]) executed into a sink
//! ([`run`]), and the spec can be saved and executed by `anabranch run`. [`server`] serves the page
//! to clients with the token ([`access`]).
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
