//! Ctrl-C in the middle of simulations: a word about what is kept, and then the end that the signal would have made.

use std::fs;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::thread;

use nix::sys::signal::{SigSet, Signal, raise};

use crate::note::note;

/// Watches for an interruption from its making on.
pub struct Interruption {
    /// The directory of finished runs, once there is one.
    kept: Arc<OnceLock<Box<Path>>>,
}

impl Interruption {
    /// Begins to watch. Threads that are begun later leave the signal to the one that watches.
    pub fn watch() -> Self {
        let kept = Arc::new(OnceLock::new());
        let mut interrupt = SigSet::empty();
        interrupt.add(Signal::SIGINT);
        // A system that does not let it be blocked ends the process without a word, as it would anyway.
        if !is_ignored() && interrupt.thread_block().is_ok() {
            let kept = Arc::clone(&kept);
            thread::spawn(move || wait(interrupt, &kept));
        }
        Self { kept }
    }

    /// From now on finished runs are kept in this directory.
    pub fn keeps(&self, directory: &Path) {
        // It is said once.
        let _ = self.kept.set(directory.into());
    }
}

/// Whether who started this process wants it to go on (`nohup`, and shells for what runs in the background); a signal that is waited for
/// comes also then. Where the system does not tell, it is taken to end the process.
fn is_ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|it| it.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|it| u64::from_str_radix(it.trim(), 16).ok());
    ignored.is_some_and(|signals| signals >> (Signal::SIGINT as u32 - 1) & 1 == 1)
}

/// Waits for the signal, says what is kept, and ends the process by the same signal.
fn wait(interrupt: SigSet, kept: &OnceLock<Box<Path>>) {
    if interrupt.wait().is_err() {
        return;
    }
    // The bar, and what the terminal shows of Ctrl-C, stand in the line.
    let begin = if io::stderr().is_terminal() { "\n" } else { "" };
    match kept.get() {
        Some(directory) => note(format_args!(
            "{begin}interrupted\n{}",
            crate::failure::kept_in(directory)
        )),
        None => note(format_args!("{begin}interrupted")),
    }
    let _ = interrupt.thread_unblock();
    let _ = raise(Signal::SIGINT);
}
