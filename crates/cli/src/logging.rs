//! `RUST_LOG`: what endpoints and the emulator do, on standard error.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;

use crate::failure::Failure;

/// The variable that says what is logged.
const VARIABLE: &str = "RUST_LOG";

/// Logs what `RUST_LOG` asks for from now on. Where it is not set nothing is logged, and nothing looks at what could be.
pub fn begin() -> Result<(), Failure> {
    let text = match std::env::var(VARIABLE) {
        Ok(text) if !text.is_empty() => text,
        _ => return Ok(()),
    };
    let filter = EnvFilter::try_new(&text).map_err(|error| {
        Failure::Asked(format!(
            "found {VARIABLE}={text:?}: {error}; write a level (error, warn, info, debug, trace), or TARGET=LEVEL: anabranch_net=debug"
        ))
    })?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        // It would tell what cannot be written on the same standard error, and panic.
        .log_internal_errors(false)
        .with_ansi(io::stderr().is_terminal())
        .init();
    Ok(())
}
