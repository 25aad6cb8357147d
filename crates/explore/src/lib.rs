//! `anabranch explore`: a local web page that displays the values of a spec as sliders, and its run
//! while it is computed.
//!
//! The page should not store results. It displays a spec (`session`) executed into a sink
//! (`run`), and the spec can be saved and executed by `anabranch run`. `server` serves the page
//! to clients with the token (`auth`).
#![forbid(unsafe_code)]

mod auth;
mod choices;
mod connection_limit;
mod controls;
mod downsample;
mod event_stream;
mod ladder;
mod map;
mod run;
mod samples;
mod server;
mod session;
mod slider_steps;

pub use auth::Token;
pub use connection_limit::{Admission, LimitedListener, LimitedStream};
pub use server::Server;
pub use session::{Session, Source};
