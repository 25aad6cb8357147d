//! `RUST_LOG`: logs of endpoints and the emulator, on standard error.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;

use crate::failure::Failure;

/// The variable with the log filter.
const VARIABLE: &str = "RUST_LOG";

/// Enables the log by `RUST_LOG`. If that is not set, logging is disabled and has no cost.
pub fn begin() -> Result<(), Failure> {
    let text = match std::env::var(VARIABLE) {
        Ok(text) if !text.is_empty() => text,
        _ => return Ok(()),
    };
    let filter = EnvFilter::try_new(&text).map_err(|error| {
        Failure::Usage(format!(
            "found {VARIABLE}={text:?}: {error}; write a level (error, warn, info, debug, trace), or TARGET=LEVEL: anabranch_net=debug"
        ))
    })?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        // The writer would print write errors on the same standard error, and panic.
        .log_internal_errors(false)
        .with_ansi(io::stderr().is_terminal())
        .init();
    Ok(())
}
