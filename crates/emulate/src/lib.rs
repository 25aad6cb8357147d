//! Network emulator: runs the links of the simulator in real time, between two UDP ports, between
//! two addresses for SCTP directly over IP, or between TUN devices for arbitrary programs.
//!
//! Packets of any program that uses UDP or SCTP enter a [`World`] at one node, cross its links
//! (delay, rate, queue, loss, schedule, impairments), and leave at another. The world is that of
//! the simulator, driven by the wall clock. A packet is treated exactly as in a simulation in which
//! it is sent at the same time.
//!
//! ```text
//! client  --UDP-->  listen [near node] === world === [far node] from  --UDP-->  server
//! ```
//!
//! Each side sees the address of the emulator as that of its peer, as behind a network address
//! translator. Responses of the far side go to the near side's most recent sender, so only one
//! client should be active at a time.
//!
//! TUN devices ([`tun`]) carry arbitrary IP packets between any number of nodes. [`namespace`]
//! provides a network namespace for the programs of each node.
#![forbid(unsafe_code)]
#![warn(missing_debug_implementations, unnameable_types, unreachable_pub)]
#![warn(clippy::use_self)]

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

pub use report::{DepartureLateness, EmulationReport};
use running::{Failure, Running};

/// Headers that count as part of a packet on the emulated links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Framing {
    /// IP header, UDP header and payload, as on the wire.
    #[default]
    Udp,
    /// IP header and payload. The payload is an SCTP packet, which is treated as if it was carried
    /// directly over IP, as in simulations of SCTP.
    Sctp,
}

/// Transport of packets to and from the emulator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Carrier {
    /// UDP datagrams.
    #[default]
    Udp,
    /// SCTP directly over IP (protocol 132), IPv4 or IPv6. There are no UDP ports, so the emulator
    /// needs two addresses of the host that no other process uses for SCTP. It also needs the
    /// permission to open raw sockets.
    Ip,
}

/// Addresses and packet format of an emulator.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Transport of packets to and from the emulator.
    pub carrier: Carrier,
    /// Address on which the near side listens. Port 0 selects a free port; over IP the port must be
    /// 0.
    pub listen: SocketAddr,
    /// Source address of packets to the far side, at which its responses are received. `None` lets
    /// the system choose. Over IP it is required, and must differ from the address of `listen`.
    pub from: Option<IpAddr>,
    /// Destination of packets that have crossed to the far side. Over IP the port is ignored.
    pub to: SocketAddr,
    /// Headers that count as part of a packet; over IP always [`Framing::Sctp`].
    pub framing: Framing,
}

impl Config {
    /// A configuration for UDP from `listen` to `to`, with a source address that the system
    /// chooses.
    pub fn new(listen: SocketAddr, to: SocketAddr) -> Self {
        Self {
            carrier: Carrier::Udp,
            listen,
            from: None,
            to,
            framing: Framing::Udp,
        }
    }

    /// Returns a copy modified by `change`.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Replaces values that the carrier does not support.
    fn over_carrier(mut self) -> Self {
        if self.carrier == Carrier::Ip {
            self.framing = Framing::Sctp;
            self.listen.set_port(0);
            self.to.set_port(0);
        }
        self
    }
}

/// A network, with the nodes at which packets enter and leave.
#[derive(Debug)]
pub struct Path {
    /// The network.
    pub world: World,
    /// Node of the near side.
    pub near: NodeId,
    /// Node of the far side.
    pub far: NodeId,
}

/// Reason why the emulator could not be started.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The process may not open raw sockets.
    #[error(
        "raw IP (protocol 132) is not allowed to this process: run it as root, or give it CAP_NET_RAW: {0}"
    )]
    RawNotAllowed(#[source] io::Error),
    /// Over IP: the two addresses are equal, or do not belong to this host.
    #[error(
        "found {listen} and {from} as the emulator's two addresses; over IP it needs two different ones of this host, one for each side"
    )]
    Addresses {
        /// Address of the near side.
        listen: IpAddr,
        /// Address of the far side.
        from: IpAddr,
    },
    /// A socket could not be opened.
    #[error("cannot open a socket at {address}: {source}")]
    Socket {
        /// Address of the socket.
        address: SocketAddr,
        /// Cause.
        source: io::Error,
    },
    /// The network cannot be built.
    #[error("the network cannot be built: {0}")]
    Build(#[from] BuildError),
    /// The thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

impl From<Failure> for StartError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Build(error) => Self::Build(error),
            Failure::Thread(error) => Self::Thread(error),
        }
    }
}

/// A running emulator, which stops when it is dropped.
#[derive(Debug)]
pub struct Emulator {
    address: SocketAddr,
    far_port: u16,
    running: Running<EmulationReport>,
}

impl Emulator {
    /// Starts an emulator on separate threads. `build` creates the network, on the thread that
    /// drives it.
    ///
    /// # Errors
    /// A socket or thread cannot be created, or `build` fails.
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
            running: Running::start(EmulationReport::default(), make, run)?,
        })
    }

    /// Address on which the near side listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// UDP port from which packets are sent to the far side; 0 over IP.
    pub fn far_port(&self) -> u16 {
        self.far_port
    }

    /// Statistics so far.
    pub fn report(&self) -> EmulationReport {
        self.running.report()
    }

    /// Stops the emulator and returns its statistics.
    pub fn stop(mut self) -> EmulationReport {
        // Cannot fail: only drivers with captures return errors.
        let _ = self.running.halt();
        self.report()
    }
}
