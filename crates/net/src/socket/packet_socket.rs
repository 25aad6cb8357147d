//! Packet sockets of a caller.

use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use anabranch_transport::Ecn;
use quinn_udp::{EcnCodepoint, RecvMeta, Transmit};

/// A packet to be sent.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Packet<'a> {
    /// The destination: the peer's address and UDP port (0 directly over IP).
    pub to: SocketAddr,
    /// The local address to send from, if it matters; `None`: that of [`PacketSocket::local_addr`].
    pub from: Option<IpAddr>,
    /// For the ECN field of its IP header.
    pub ecn: Ecn,
    /// Common header and chunks.
    pub bytes: &'a [u8],
}

/// A packet that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Received {
    /// Length of the packet in bytes; a length of 0 is counted as a broken packet.
    pub len: usize,
    /// The sender's address and UDP port (0 directly over IP).
    pub from: SocketAddr,
    /// The local address that it was sent to; `None`: that of [`PacketSocket::local_addr`].
    pub to: Option<IpAddr>,
    /// ECN field of its IP header; `NotEct` if it is unknown.
    pub ecn: Ecn,
}

impl Received {
    /// A packet of `len` bytes from `from`, to the address of the socket, without ECN.
    pub fn new(len: usize, from: SocketAddr) -> Self {
        Self {
            len,
            from,
            to: None,
            ecn: Ecn::NotEct,
        }
    }

    /// Returns a copy with this ECN field.
    #[must_use]
    pub fn with_ecn(self, ecn: Ecn) -> Self {
        Self { ecn, ..self }
    }
}

/// A carrier of SCTP packets that is not a socket of the system: a tunnel, a relay, a network in
/// memory. See [`SharedSockets::on_packets`](crate::SharedSockets::on_packets). Packets may be
/// lost, duplicated and reordered. It is called from the endpoint's task and must not block.
pub trait PacketSocket: Send + 'static {
    /// The local address of its packets, and the UDP port that peers see (0 directly over IP). The
    /// value must not change.
    fn local_addr(&self) -> SocketAddr;

    /// Accepts a packet, immediately or when there is space for it. The largest has about 65,500
    /// bytes; the discovered path MTU decides.
    ///
    /// # Errors
    /// The packet is lost, and counted
    /// ([`EndpointStatistics::send_errors`](crate::EndpointStatistics::send_errors)); the next
    /// packet is sent nevertheless. A call that would block should return `Pending`, not an error.
    fn poll_send(&mut self, cx: &mut Context<'_>, packet: &Packet<'_>) -> Poll<io::Result<()>>;

    /// Puts the next packet into `buffer`, which has room for 65,536 bytes, now or when one
    /// arrives. A larger packet should be truncated.
    ///
    /// # Errors
    /// No packet was received; the next call follows immediately. A socket that has no more packets
    /// for good should stay `Pending`.
    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<Received>>;
}

/// A packet socket of the caller, which one task at a time uses.
pub(crate) struct CallerSocket {
    socket: Mutex<Box<dyn PacketSocket>>,
    local: SocketAddr,
}

impl CallerSocket {
    pub(crate) fn new(socket: Box<dyn PacketSocket>) -> Self {
        Self {
            local: socket.local_addr(),
            socket: Mutex::new(socket),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Box<dyn PacketSocket>> {
        self.socket.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn local(&self) -> SocketAddr {
        self.local
    }

    pub(crate) fn poll_send(
        &self,
        cx: &mut Context<'_>,
        transmit: &Transmit<'_>,
    ) -> Poll<io::Result<()>> {
        let packet = Packet {
            to: transmit.destination,
            from: transmit.src_ip,
            ecn: transmit
                .ecn
                .map_or(Ecn::NotEct, |it| Ecn::from_bits(it as u8)),
            bytes: transmit.contents,
        };
        self.lock().poll_send(cx, &packet)
    }

    pub(crate) fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let (Some(buffer), Some(meta)) = (buffers.first_mut(), meta.first_mut()) else {
            return Poll::Ready(Ok(0));
        };
        let received = ready!(self.lock().poll_receive(cx, buffer))?;
        *meta = RecvMeta::default();
        meta.len = received.len.min(buffer.len());
        meta.stride = meta.len;
        meta.addr = received.from;
        meta.dst_ip = received.to;
        meta.ecn = EcnCodepoint::from_bits(received.ecn.bits());
        Poll::Ready(Ok(1))
    }
}

impl fmt::Debug for CallerSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller")
            .field("local", &self.local)
            .finish_non_exhaustive()
    }
}
