//! Emulation for all IP packets, with TUN devices at nodes of the world.
//!
//! A packet that is read from a device enters the world at its node, as a whole IP packet of its
//! real size. Packets that arrive at the node are written to the device. Fragments, all protocols
//! and both IP versions are supported. Simulated routers decrement the TTL, mark ECN, and send ICMP
//! errors.

mod device;
mod drive;
mod report;

use std::io;

use anabranch_sim::{BuildError, NodeId, World};
use thiserror::Error;

pub use device::Tun;
pub use report::{HostReport, TunReport};

use crate::running::{Failure, Running};

/// Maximum size of the packets on all links, bytes. Further packets are dropped and counted as
/// overruns. Limits memory for specs with unlimited queues.
pub const MAX_HELD: u64 = 256 << 20;

/// A node of the world with a device.
#[derive(Debug)]
pub struct TunHost {
    /// Name of the host in the report.
    pub name: String,
    /// The node of the world.
    pub node: NodeId,
    /// The device of the host.
    pub tun: Tun,
}

/// Reason why an emulator with TUN devices could not be started.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TunError {
    /// The network cannot be built.
    #[error("the network cannot be built: {0}")]
    Build(#[from] BuildError),
    /// The thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

impl From<Failure> for TunError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Build(error) => Self::Build(error),
            Failure::Thread(error) => Self::Thread(error),
        }
    }
}

/// A world that runs in real time between TUN devices, and stops when it is dropped.
#[derive(Debug)]
pub struct TunEmulator {
    running: Running<TunReport>,
}

impl TunEmulator {
    /// Starts an emulator on a separate thread, on which `build` creates the network. Time 0 of the
    /// world is the time at which this function returns; packets that were sent before then enter
    /// at time 0.
    ///
    /// # Errors
    /// [`TunError`].
    pub fn start(
        hosts: Vec<TunHost>,
        build: impl FnOnce() -> Result<World, BuildError> + Send + 'static,
    ) -> Result<Self, TunError> {
        let report = TunReport::of(&hosts);
        let make = move |shared| build().and_then(|world| drive::Driver::new(world, hosts, shared));
        let running = Running::start(report, make, drive::Driver::run)?;
        Ok(Self { running })
    }

    /// Statistics so far.
    pub fn report(&self) -> TunReport {
        self.running.report()
    }

    /// Stops the emulator and returns its statistics, and the first error of a capture file.
    pub fn stop(mut self) -> (TunReport, io::Result<()>) {
        let captured = self.running.halt();
        (self.report(), captured)
    }
}
