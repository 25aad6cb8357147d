//! `anabranch explore`: a local web page with sliders for the values of a spec, and with charts of
//! the run, which are drawn while it is computed.
//!
//! The page does not store results. `session` selects a run of a spec, and `run` executes it into a
//! sink; the page can show the selected run as a spec, for `anabranch run`. `server` serves the
//! page to clients that have the token (`auth`).
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
pub use session::{LoadedSpec, Session};
