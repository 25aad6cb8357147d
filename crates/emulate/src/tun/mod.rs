//! Any IP packets over the simulated links: TUN devices at nodes of the world.
//!
//! What a device is given enters the world at its node as a whole IP packet, with its real size; what arrives at the node comes out of the
//! device. Fragments, any protocol and both versions of IP pass. Simulated routers count the time to live down, mark ECN, and answer with ICMP
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

impl From<Failure> for TunError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Build(error) => TunError::Build(error),
            Failure::Thread(error) => TunError::Thread(error),
        }
    }
}

/// A world in real time between TUN devices. It stops when it is dropped.
#[derive(Debug)]
pub struct TunEmulator {
    running: Running<TunReport>,
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
        let report = TunReport::of(&hosts);
        let make = move |shared| build().and_then(|world| drive::Driver::new(world, hosts, shared));
        let running = Running::start(report, make, drive::Driver::run)?;
        Ok(Self { running })
    }

    /// What it did so far.
    pub fn report(&self) -> TunReport {
        self.running.report()
    }

    /// Stops it, and says what it did; an error is the first of a capture's file.
    pub fn stop(mut self) -> (TunReport, io::Result<()>) {
        let captured = self.running.halt();
        (self.report(), captured)
    }
}
