//! Runs long work on another thread, while the calling thread checks for signals and reports
//! progress.

use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use anabranch_advise::AdviceProgress;
use anabranch_lab::run::ProgressObserver;
use pyo3::prelude::*;

use crate::error;

/// Interval at which signals are checked.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Progress of the work, and whether it should stop.
#[derive(Debug, Default)]
pub struct WorkState {
    runs: AtomicUsize,
    finished: AtomicUsize,
    /// Total and completed simulated time, milliseconds.
    total: AtomicU64,
    done: AtomicU64,
    stop: AtomicBool,
}

impl WorkState {
    /// Whether no further run should start.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn report(&self) -> (usize, usize, f64, f64) {
        let seconds = |milliseconds: &AtomicU64| milliseconds.load(Ordering::Relaxed) as f64 / 1e3;
        (
            self.finished.load(Ordering::Relaxed),
            self.runs.load(Ordering::Relaxed),
            seconds(&self.done),
            seconds(&self.total),
        )
    }
}

fn milliseconds(seconds: f64) -> u64 {
    (seconds * 1e3) as u64
}

impl ProgressObserver for WorkState {
    fn begin(&self, runs: usize, finished: usize, seconds: f64) {
        self.runs.store(runs, Ordering::Relaxed);
        self.finished.store(finished, Ordering::Relaxed);
        self.total.store(milliseconds(seconds), Ordering::Relaxed);
    }

    fn finished(&self, seconds: f64) {
        self.finished.fetch_add(1, Ordering::Relaxed);
        self.done
            .fetch_add(milliseconds(seconds), Ordering::Relaxed);
    }
}

impl AdviceProgress for WorkState {
    fn stage(&self, _: &str) {}

    fn outlook(&self, _: u64, _: u64) {}

    fn expect(&self, seconds: f64) {
        let total = self.done.load(Ordering::Relaxed) + milliseconds(seconds);
        self.total.store(total, Ordering::Relaxed);
    }

    fn did(&self, seconds: f64) {
        self.finished.fetch_add(1, Ordering::Relaxed);
        let span = milliseconds(seconds);
        let done = self.done.fetch_add(span, Ordering::Relaxed) + span;
        self.total.fetch_max(done, Ordering::Relaxed);
    }
}

/// Runs `work` on another thread without the interpreter's lock. The calling thread calls
/// `progress` with finished runs, total runs (0 if unknown), completed simulated seconds, and total
/// simulated seconds. If a signal handler (Ctrl-C) or `progress` raises, the wait ends immediately,
/// and the current runs are stopped in the background and discarded.
///
/// # Errors
/// The exception of a signal handler or of `progress`; a panic of the work.
pub fn wait<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Arc<WorkState>) -> T + Send + 'static,
) -> PyResult<T> {
    let state = Arc::new(WorkState::default());
    let (sender, receiver) = sync_channel(1);
    let own = Arc::clone(&state);
    thread::spawn(move || {
        let made = panic::catch_unwind(AssertUnwindSafe(|| work(&own)));
        // Fails if the caller no longer waits, after a signal.
        let _ = sender.send(made);
    });
    let tell = || match progress {
        Some(progress) => progress.call1(state.report()).map(drop),
        None => Ok(()),
    };
    let receiver = std::sync::Mutex::new(receiver);
    loop {
        let heard = py.detach(|| {
            let receiver = receiver
                .lock()
                .unwrap_or_else(|poisoned| poisoned.into_inner());
            receiver.recv_timeout(POLL_INTERVAL)
        });
        let looked = py.check_signals().and_then(|()| tell());
        match (heard, looked) {
            (Ok(Ok(made)), Ok(())) => return Ok(made),
            (Ok(Err(_)) | Err(RecvTimeoutError::Disconnected), Ok(())) => {
                return Err(error::failed(
                    "a fault of this program; what it said stands above",
                ));
            }
            (Err(RecvTimeoutError::Timeout), Ok(())) => {}
            (_, Err(raised)) => {
                state.stop.store(true, Ordering::Relaxed);
                return Err(raised);
            }
        }
    }
}
