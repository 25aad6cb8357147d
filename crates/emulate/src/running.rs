//! Handle of a driver on a separate thread.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use anabranch_sim::BuildError;

/// State that a driver and its handle share.
pub(crate) struct Shared<R> {
    /// Set when the driver should stop.
    pub(crate) stop: Arc<AtomicBool>,
    /// Statistics that the driver has published last.
    pub(crate) report: Arc<Mutex<R>>,
}

impl<R> Shared<R> {
    /// Publishes the statistics of the driver.
    pub(crate) fn publish(&self, report: R) {
        *self.report.lock().unwrap_or_else(PoisonError::into_inner) = report;
    }
}

/// Handle of a driver on its thread; `R` is the type of its statistics.
#[derive(Debug)]
pub(crate) struct Running<R> {
    stop: Arc<AtomicBool>,
    report: Arc<Mutex<R>>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

/// Reason why a driver was not started.
pub(crate) enum Failure {
    /// The network cannot be built.
    Build(BuildError),
    /// The thread could not be started, or has ended.
    Thread(io::Error),
}

impl<R: Clone + Send + 'static> Running<R> {
    /// Starts a thread on which `make` creates the driver and `run` runs it. Returns when the
    /// driver has been created.
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
                // Fails only if the caller no longer waits.
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

    /// The statistics that the driver has published last.
    pub(crate) fn report(&self) -> R {
        self.report
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl<R> Running<R> {
    /// Stops the driver, waits for it, and returns the result of `run`.
    pub(crate) fn halt(&mut self) -> io::Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            // A panic was printed by the thread already.
            Some(Err(_)) | None => Ok(()),
        }
    }
}

impl<R> Drop for Running<R> {
    fn drop(&mut self) {
        // The result is not needed, because the handle is dropped.
        let _ = self.halt();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Loop of a driver that counts how often it checks for a stop request.
    fn turn(shared: &Shared<u64>) {
        while !shared.stop.load(Ordering::Relaxed) {
            *shared.report.lock().expect("nobody panics") += 1;
        }
    }

    #[test]
    fn a_driver_runs_until_it_is_stopped_and_reports_what_it_returned() {
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
