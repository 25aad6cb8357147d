//! Interface between a transport protocol and its driver: time, paths, outgoing packets and trace
//! samples.
//!
//! SCTP and TCP have the same interface for all drivers: the simulator, real sockets and tests. A
//! driver should repeat these steps:
//!
//! 1. call one `handle_*` or user method with the current time,
//! 2. call [`Transport::poll_transmit`] until it returns `None`, and then the `poll_event` of the
//!    protocol until it returns `None`,
//! 3. call [`Transport::poll_timeout`] to obtain the time at which it should call
//!    [`Transport::handle_timeout`].
//!
//! Time must not decrease from one call to the next. A driver with a clock that may go backwards
//! should repeat the latest time it has passed.
//!
//! Implementations must not read a clock, draw ambient randomness or perform I/O, because their
//! results must be reproducible.
#![forbid(unsafe_code)]
#![warn(missing_debug_implementations, unnameable_types, unreachable_pub)]
#![warn(clippy::use_self)]

pub mod ecn;
pub mod time;
pub mod trace;

use std::net::IpAddr;

use bytes::{Bytes, BytesMut};

pub use ecn::Ecn;
pub use time::Nanos;
pub use trace::{Probe, ProbeSet, Sample, Trace};

/// Source and destination address of packets, as seen from this host.
///
/// SCTP calls `remote` a destination transport address (RFC 9260 §1.2). `local` is the source
/// address to use, or the unspecified address if the driver may choose one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path {
    /// Address of this host: the source of sent packets, and the destination of received packets.
    pub local: IpAddr,
    /// Address of the peer.
    pub remote: IpAddr,
}

impl Path {
    /// A path from `local` to `remote`.
    pub const fn new(local: IpAddr, remote: IpAddr) -> Self {
        Self { local, remote }
    }

    /// The path as seen by the peer.
    pub const fn reversed(self) -> Self {
        Self {
            local: self.remote,
            remote: self.local,
        }
    }
}

/// A packet that [`Transport::poll_transmit`] has appended to the buffer of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Path of the packet.
    pub path: Path,
    /// Number of bytes that were appended to the buffer: transport header and payload, without IP
    /// header.
    pub len: usize,
    /// ECN field of the IP header.
    pub ecn: Ecn,
    /// Whether IP may fragment the packet ("don't fragment" is not set). This is needed if the
    /// packet exceeds the known MTU of the path and cannot be split further.
    pub may_fragment: bool,
}

/// A sans-IO transport protocol.
pub trait Transport {
    /// Processes one datagram (the IP payload) that arrived on `path`. `ecn` is the ECN field of
    /// its IP header, or [`Ecn::NotEct`] if the driver does not know it. If a message consists of a
    /// single chunk, its payload is delivered to the application as a slice of `datagram`, without
    /// copying.
    fn handle_datagram(&mut self, now: Nanos, path: Path, ecn: Ecn, datagram: Bytes);

    /// Handles the timers that are due at `now`. If none is due, the call has no effect.
    fn handle_timeout(&mut self, now: Nanos);

    /// Appends the next packet to `out`, or returns `None` if nothing may be sent now. The caller
    /// should split the bytes off (`out.split().freeze()`), so that one large allocation serves
    /// many packets.
    fn poll_transmit(&mut self, now: Nanos, out: &mut BytesMut) -> Option<Transmit>;

    /// Time at which [`Transport::handle_timeout`] should be called; `None` if no timer is running.
    fn poll_timeout(&self) -> Option<Nanos>;
}
