//! A driver on a thread of its own: started, watched and stopped from another.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use anabranch_sim::BuildError;

/// What a driver shares with whoever started it.
pub(crate) struct Shared<R> {
    /// It is to end.
    pub(crate) stop: Arc<AtomicBool>,
    /// What it did so far.
    pub(crate) report: Arc<Mutex<R>>,
}

impl<R> Shared<R> {
    /// The driver has come so far.
    pub(crate) fn publish(&self, report: R) {
        *self.report.lock().unwrap_or_else(PoisonError::into_inner) = report;
    }
}

/// A driver that runs, and reports `R`.
#[derive(Debug)]
pub(crate) struct Running<R> {
    stop: Arc<AtomicBool>,
    report: Arc<Mutex<R>>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

/// Why none runs.
pub(crate) enum Failure {
    /// The network cannot be built.
    Build(BuildError),
    /// No thread could be started, or it has ended.
    Thread(io::Error),
}

impl<R: Clone + Send + 'static> Running<R> {
    /// Starts a thread, where `make` makes the driver and `run` lets it run. Returns once the driver is made.
    pub(crate) fn start<D>(
        report: R,
        make: impl FnOnce(Shared<R>) -> Result<D, BuildError> + Send + 'static,
        run: impl FnOnce(D) -> io::Result<()> + Send + 'static,
    ) -> Result<Self, Failure> {
        let stop = Arc::new(AtomicBool::new(false));
        let report = Arc::new(Mutex::new(report));
        let shared = Shared {
            stop: Arc::clone(&stop),
            report: Arc::clone(&report),
        };
        let (built, is_built) = std::sync::mpsc::channel();
        let drive = move || match make(shared) {
            Ok(driver) => {
                // Nobody waits for the word only if the start was given up.
                let _ = built.send(Ok(()));
                run(driver)
            }
            Err(error) => {
                drop(built.send(Err(error)));
                Ok(())
            }
        };
        let thread = thread::Builder::new()
            .name("emulator".to_owned())
            .spawn(drive)
            .map_err(Failure::Thread)?;
        let running = Self {
            stop,
            report,
            thread: Some(thread),
        };
        match is_built.recv() {
            Ok(Ok(())) => Ok(running),
            Ok(Err(error)) => Err(Failure::Build(error)),
            Err(_) => Err(Failure::Thread(io::Error::other("the thread ended"))),
        }
    }

    /// What it did so far.
    pub(crate) fn report(&self) -> R {
        self.report
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl<R> Running<R> {
    /// Stops it and waits until it has ended: what its `run` returned.
    pub(crate) fn halt(&mut self) -> io::Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            // A panic there was printed; there is nothing to add.
            Some(Err(_)) | None => Ok(()),
        }
    }
}

impl<R> Drop for Running<R> {
    fn drop(&mut self) {
        // Whoever drops it does not ask what it returned.
        let _ = self.halt();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The driver counts how often it looks whether it is to stop.
    fn turn(shared: &Shared<u64>) {
        while !shared.stop.load(Ordering::Relaxed) {
            *shared.report.lock().expect("nobody panics") += 1;
        }
    }

    #[test]
    fn a_driver_runs_until_it_is_stopped_and_tells_what_it_returned() {
        let run = |shared: Shared<u64>| {
            turn(&shared);
            Err(io::Error::other("a capture"))
        };
        let mut running = Running::start(0, Ok, run).ok().expect("it starts");
        while running.report() == 0 {
            thread::yield_now();
        }
        let error = running.halt().expect_err("it said so");
        assert_eq!(error.to_string(), "a capture");
        let report = running.report();
        assert!(running.halt().is_ok(), "it has ended already");
        assert_eq!(running.report(), report);
    }

    #[test]
    fn who_drops_it_waits_until_it_has_ended() {
        let ended = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&ended);
        let run = move |shared: Shared<u64>| {
            turn(&shared);
            told.store(true, Ordering::Relaxed);
            Ok(())
        };
        drop(Running::start(0, Ok, run));
        assert!(ended.load(Ordering::Relaxed));
    }

    #[test]
    fn a_network_that_cannot_be_built_is_no_start() {
        let make = |_: Shared<u64>| Err::<(), _>(BuildError::Schedule);
        let failure = Running::start(0, make, |()| Ok(())).err();
        assert!(matches!(
            failure,
            Some(Failure::Build(BuildError::Schedule))
        ));
    }
}
