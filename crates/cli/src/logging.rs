//! Log entries of endpoints and the emulator on standard error, enabled by `RUST_LOG`.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;

use crate::failure::Failure;

/// Environment variable with the log filter.
const VARIABLE: &str = "RUST_LOG";

/// Enables logging with the filter in `RUST_LOG`. Without that variable logging is disabled and has
/// no cost.
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
        // Errors of logging are not reported, because the report would also be written to standard
        // error, which panics if it fails.
        .log_internal_errors(false)
        .with_ansi(io::stderr().is_terminal())
        .init();
    Ok(())
}
