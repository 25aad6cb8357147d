//! Any IP packets over the simulated links: TUN devices at nodes of the world.
//!
//! What a device is given enters the world at its node as a whole IP packet, with its real size; what arrives at the node comes out of the
//! device. Fragments, any protocol and both versions of IP pass. Simulated routers count the time to live down, mark ECN, and answer with ICMP
//! errors.

mod device;
mod drive;
mod report;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use anabranch_sim::{BuildError, NodeId, World};
use thiserror::Error;

pub use device::Tun;
pub use report::{HostReport, TunReport};

/// Bytes of packets that the links may hold together; what comes while they hold more is refused, and counted as an overrun. It bounds memory where a
/// spec has queues without a limit.
pub const MAX_HELD: u64 = 256 << 20;

/// A node of the world whose packets a device carries.
#[derive(Debug)]
pub struct Host {
    /// Its name, for the report.
    pub name: String,
    /// The node.
    pub node: NodeId,
    /// The device.
    pub tun: Tun,
}

/// Why an emulator over TUN devices could not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TunError {
    /// The network cannot be built.
    #[error("the network cannot be built: {0}")]
    Build(#[from] BuildError),
    /// No thread could be started.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

/// A world in real time between TUN devices. It stops when it is dropped.
#[derive(Debug)]
pub struct TunEmulator {
    stop: Arc<AtomicBool>,
    report: Arc<Mutex<TunReport>>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl TunEmulator {
    /// Starts an emulator on a thread of its own, where `build` makes the network. The world's time begins when this returns; packets
    /// that came before enter at 0.
    ///
    /// # Errors
    /// [`TunError`].
    pub fn start(
        hosts: Vec<Host>,
        build: impl FnOnce() -> Result<World, BuildError> + Send + 'static,
    ) -> Result<Self, TunError> {
        let stop = Arc::new(AtomicBool::new(false));
        let report = Arc::new(Mutex::new(TunReport::of(&hosts)));
        let (built, is_built) = std::sync::mpsc::channel();
        let (halt, shared) = (Arc::clone(&stop), Arc::clone(&report));
        let drive = move || {
            let driver = build().and_then(|world| drive::Driver::new(world, hosts, halt, shared));
            match driver {
                Ok(driver) => {
                    // Nobody waits for the word only if the start was given up.
                    let _ = built.send(Ok(()));
                    driver.run()
                }
                Err(error) => {
                    drop(built.send(Err(error)));
                    Ok(())
                }
            }
        };
        let thread = thread::Builder::new()
            .name("emulator".to_owned())
            .spawn(drive)
            .map_err(TunError::Thread)?;
        let emulator = Self {
            stop,
            report,
            thread: Some(thread),
        };
        match is_built.recv() {
            Ok(Ok(())) => Ok(emulator),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(TunError::Thread(io::Error::other("the thread ended"))),
        }
    }

    /// What it did so far.
    pub fn report(&self) -> TunReport {
        self.report
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Stops it, and says what it did.
    ///
    /// # Errors
    /// The first error of a capture's file.
    pub fn stop(mut self) -> (TunReport, io::Result<()>) {
        let captured = self.halt();
        (self.report(), captured)
    }

    fn halt(&mut self) -> io::Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            // A panic there was printed; there is nothing to add.
            Some(Err(_)) | None => Ok(()),
        }
    }
}

impl Drop for TunEmulator {
    fn drop(&mut self) {
        // Whoever drops it does not ask for the captures.
        let _ = self.halt();
    }
}
