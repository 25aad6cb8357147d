//! Ctrl-C during simulations: prints the directory of finished runs, and ends the process by the
//! same signal.

use std::fs;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::thread;

use nix::sys::signal::{SigSet, Signal, raise};

use crate::stderr::note;

/// Handler of SIGINT, active from its creation on.
pub struct Interruption {
    /// The directory of finished runs; not set if there is none.
    kept: Arc<OnceLock<Box<Path>>>,
}

impl Interruption {
    /// Starts to watch for the signal. Must be called before other threads are started, because
    /// they inherit the signal mask.
    pub fn watch() -> Self {
        let kept = Arc::new(OnceLock::new());
        let mut interrupt = SigSet::empty();
        interrupt.add(Signal::SIGINT);
        // If the signal cannot be blocked, its default action ends the process without a message.
        if !is_ignored() && interrupt.thread_block().is_ok() {
            let kept = Arc::clone(&kept);
            thread::spawn(move || wait(interrupt, &kept));
        }
        Self { kept }
    }

    /// Sets the directory of finished runs, which the message names.
    pub fn keeps(&self, directory: &Path) {
        // Only the first call has an effect.
        let _ = self.kept.set(directory.into());
    }
}

/// Returns true if the parent of this process has set the signal to be ignored (`nohup`, and shells
/// for background jobs). In that case no handler is installed, because the handler would receive
/// the signal although it should be ignored. Returns false if the system does not report it.
fn is_ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|it| it.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|it| u64::from_str_radix(it.trim(), 16).ok());
    ignored.is_some_and(|signals| signals >> (Signal::SIGINT as u32 - 1) & 1 == 1)
}

/// Waits for the signal, prints the directory of finished runs, and ends the process by the same
/// signal.
fn wait(interrupt: SigSet, kept: &OnceLock<Box<Path>>) {
    if interrupt.wait().is_err() {
        return;
    }
    // Starts a new line, because the current line contains the progress bar and the terminal's echo
    // of Ctrl-C.
    let begin = if io::stderr().is_terminal() { "\n" } else { "" };
    match kept.get() {
        Some(directory) => note(format_args!(
            "{begin}interrupted\n{}",
            crate::failure::location_of_runs(directory)
        )),
        None => note(format_args!("{begin}interrupted")),
    }
    let _ = interrupt.thread_unblock();
    let _ = raise(Signal::SIGINT);
}
