//! Ctrl-C during simulations: prints where finished runs are, and ends the process as the signal
//! would have done.

use std::fs;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::thread;

use nix::sys::signal::{SigSet, Signal, raise};

use crate::stderr::note;

/// Watches for an interruption from its creation on.
pub struct Interruption {
    /// The directory of finished runs, if there is one.
    kept: Arc<OnceLock<Box<Path>>>,
}

impl Interruption {
    /// Starts to watch. Threads that are started later leave the signal to the watching thread.
    pub fn watch() -> Self {
        let kept = Arc::new(OnceLock::new());
        let mut interrupt = SigSet::empty();
        interrupt.add(Signal::SIGINT);
        // If the signal cannot be blocked, it ends the process without a message.
        if !is_ignored() && interrupt.thread_block().is_ok() {
            let kept = Arc::clone(&kept);
            thread::spawn(move || wait(interrupt, &kept));
        }
        Self { kept }
    }

    /// Sets the directory of finished runs.
    pub fn keeps(&self, directory: &Path) {
        // The handler is set once.
        let _ = self.kept.set(directory.into());
    }
}

/// Returns true if the parent of this process wants the signal ignored (`nohup`, and shells for
/// background jobs), because a signal with a handler is delivered even if the parent ignores it.
/// False if the system does not report it.
fn is_ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|it| it.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|it| u64::from_str_radix(it.trim(), 16).ok());
    ignored.is_some_and(|signals| signals >> (Signal::SIGINT as u32 - 1) & 1 == 1)
}

/// Waits for the signal, prints where finished runs are, and ends the process by the same signal.
fn wait(interrupt: SigSet, kept: &OnceLock<Box<Path>>) {
    if interrupt.wait().is_err() {
        return;
    }
    // The line contains the bar, and the terminal's echo of Ctrl-C.
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
