//! The contract that every transport shows its driver: time, paths, transmits and trace samples.
//!
//! SCTP and TCP look alike to whoever drives them, be it the simulator, real sockets or a test. The loop law:
//!
//! 1. call one `handle_*` or user method with the current time,
//! 2. drain [`Transport::poll_transmit`] until it gives `None`, and the protocol's own `poll_event`,
//! 3. ask [`Transport::poll_timeout`] when to call [`Transport::handle_timeout`] at the latest.
//!
//! The time never goes back from one call to the next: a driver whose clock may do so keeps the latest time it has told.
//!
//! Nothing behind this contract reads a clock, draws ambient randomness or does I/O.
#![forbid(unsafe_code)]

pub mod ecn;
pub mod time;
pub mod trace;

use std::net::IpAddr;

use bytes::{Bytes, BytesMut};

pub use ecn::Ecn;
pub use time::Nanos;
pub use trace::{Probe, ProbeSet, Sample, Trace};

/// A pair of addresses that packets travel between, seen from this host.
///
/// SCTP calls the `remote` half a destination transport address (RFC 9260 §1.2); the `local` half is the source
/// address to use, or the unspecified address where the driver may choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path {
    /// This host's address: the source of what is sent, the destination of what was received.
    pub local: IpAddr,
    /// The peer's address.
    pub remote: IpAddr,
}

impl Path {
    /// A path from `local` to `remote`.
    pub const fn new(local: IpAddr, remote: IpAddr) -> Self {
        Self { local, remote }
    }

    /// The same path as the peer sees it.
    pub const fn reversed(self) -> Self {
        Self {
            local: self.remote,
            remote: self.local,
        }
    }
}

/// What [`Transport::poll_transmit`] wrote to the caller's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Where the packet goes.
    pub path: Path,
    /// Bytes appended to the buffer: transport header and payload, no IP header.
    pub len: usize,
    /// The ECN field of the packet's IP header.
    pub ecn: Ecn,
    /// IP may fragment the packet on its way ("don't fragment" is not set): it is larger than the path is known to carry,
    /// and cannot be cut again.
    pub may_fragment: bool,
}

/// A transport protocol without I/O.
pub trait Transport {
    /// Takes one datagram (the IP payload) that arrived on `path` with `ecn` in its IP header ([`Ecn::NotEct`] where the
    /// driver cannot tell). Payload that fits in one chunk is handed to the
    /// application as a slice of `datagram`, without a copy.
    fn handle_datagram(&mut self, now: Nanos, path: Path, ecn: Ecn, datagram: Bytes);

    /// Runs the timers that are due at `now`. Calling it early or twice does no harm.
    fn handle_timeout(&mut self, now: Nanos);

    /// Appends the next packet to `out`, or returns `None` when nothing may be sent now. The caller splits the bytes
    /// off (`out.split().freeze()`), so that one large allocation serves many packets.
    fn poll_transmit(&mut self, now: Nanos, out: &mut BytesMut) -> Option<Transmit>;

    /// When [`Transport::handle_timeout`] must be called at the latest; `None` while no timer runs.
    fn poll_timeout(&self) -> Option<Nanos>;
}
