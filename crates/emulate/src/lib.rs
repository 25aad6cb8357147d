//! The simulator's links in real time: between two UDP ports, between two addresses for SCTP directly over IP, or between TUN devices for any
//! program.
//!
//! Whatever speaks UDP, or SCTP, is put on a path of the simulator's making: its packets enter a
//! [`World`](anabranch_sim::World) at one node, cross its links (delay, rate, queue, loss, schedule, impairments), and leave
//! at another. The world is the simulator's own, driven by the clock instead of by its next event; what it decides about a
//! packet is what it would decide in a simulation that offered the packet at that time.
//!
//! ```text
//! client  --UDP-->  listen [near node] === world === [far node] from  --UDP-->  server
//! ```
//!
//! Each side sees the emulator's address as the other's, as behind a network address translator.
//! The far side's answers go back to whoever sent last on the near side: one client at a time.
//!
//! Over TUN devices ([`tun`]) any IP packets cross, between any number of nodes; [`namespace`] gives each node a network namespace where
//! programs run.
#![forbid(unsafe_code)]

mod clock;
mod gateway;
#[cfg(target_os = "linux")]
pub mod namespace;
mod report;
mod run;
mod running;
mod socket;
#[cfg(target_os = "linux")]
pub mod tun;

use std::io;
use std::net::{IpAddr, SocketAddr};

use anabranch_sim::{BuildError, NodeId, World};
use thiserror::Error;

pub use report::{Report, Timing};
use running::{Failure, Running};

/// What a packet on the emulated path consists of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Framing {
    /// An IP header, a UDP header and the payload: what really travels.
    #[default]
    Udp,
    /// An IP header and the payload, which is an SCTP packet, as if it travelled directly over IP: what a simulation of SCTP
    /// counts.
    Sctp,
}

/// What carries packets to the emulator and away from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Carrier {
    /// UDP datagrams.
    #[default]
    Udp,
    /// SCTP directly over IP (protocol 132), of either version. There are no ports, so the emulator needs two addresses of the
    /// host's that nobody else uses for SCTP, and the right to open raw sockets.
    Ip,
}

/// Between which ports.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Config {
    /// What carries packets to the emulator and away from it.
    pub carrier: Carrier,
    /// Where the near side listens; port 0 for any, and over IP.
    pub listen: SocketAddr,
    /// The address that the far side is sent to from, and answers to; `None`: the one that the system chooses. Over IP it is
    /// needed, and another than that of `listen`.
    pub from: Option<IpAddr>,
    /// Where packets go that crossed to the far side; over IP the port says nothing.
    pub to: SocketAddr,
    /// What a packet consists of; over IP always [`Framing::Sctp`].
    pub framing: Framing,
}

impl Config {
    /// UDP from `listen` to `to`, from an address that the system chooses.
    pub fn new(listen: SocketAddr, to: SocketAddr) -> Self {
        Self {
            carrier: Carrier::Udp,
            listen,
            from: None,
            to,
            framing: Framing::Udp,
        }
    }

    /// The same, with what `change` changes.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// The same without what the carrier has not.
    fn over_carrier(mut self) -> Self {
        if self.carrier == Carrier::Ip {
            self.framing = Framing::Sctp;
            self.listen.set_port(0);
            self.to.set_port(0);
        }
        self
    }
}

/// The network, and where packets enter and leave it.
#[derive(Debug)]
pub struct Path {
    /// The network.
    pub world: World,
    /// The node of the near side.
    pub near: NodeId,
    /// The node of the far side.
    pub far: NodeId,
}

/// Why an emulator could not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The process may not open raw sockets.
    #[error(
        "raw IP (protocol 132) is not allowed to this process: run it as root, or give it CAP_NET_RAW: {0}"
    )]
    RawNotAllowed(#[source] io::Error),
    /// Over IP: the two addresses are not the emulator's own.
    #[error(
        "found {listen} and {from} as the emulator's two addresses; over IP it needs two different ones of this host, one for each side"
    )]
    Addresses {
        /// Of the near side.
        listen: IpAddr,
        /// Of the far side.
        from: IpAddr,
    },
    /// A socket could not be opened.
    #[error("cannot open a socket at {address}: {source}")]
    Socket {
        /// Where.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The network cannot be built.
    #[error("the network cannot be built: {0}")]
    Build(#[from] BuildError),
    /// No thread could be started.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

impl From<Failure> for StartError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Build(error) => StartError::Build(error),
            Failure::Thread(error) => StartError::Thread(error),
        }
    }
}

/// A running emulator. It stops when it is dropped.
#[derive(Debug)]
pub struct Emulator {
    address: SocketAddr,
    far_port: u16,
    running: Running<Report>,
}

impl Emulator {
    /// Starts an emulator on threads of its own. `build` makes the network on the thread that then drives it.
    ///
    /// # Errors
    /// A socket or thread that cannot be had, or what `build` said.
    pub fn start(
        config: Config,
        build: impl FnOnce() -> Result<Path, BuildError> + Send + 'static,
    ) -> Result<Self, StartError> {
        let config = config.over_carrier();
        let sockets = socket::Sockets::open(&config)?;
        let address = sockets.near_address(&config)?;
        let far_port = sockets.far_port(&config)?;
        let make =
            move |shared| build().and_then(|path| run::Driver::new(path, config, sockets, shared));
        let run = |driver: run::Driver| {
            driver.run();
            Ok(())
        };
        Ok(Self {
            address,
            far_port,
            running: Running::start(Report::default(), make, run)?,
        })
    }

    /// Where the near side listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The UDP port from which the far side is sent to, and to which it answers; 0 over IP.
    pub fn far_port(&self) -> u16 {
        self.far_port
    }

    /// What it did so far.
    pub fn report(&self) -> Report {
        self.running.report()
    }

    /// Stops it, and says what it did.
    pub fn stop(mut self) -> Report {
        // A driver between sockets has nothing to complain of.
        let _ = self.running.halt();
        self.report()
    }
}
