//! Packet sockets: carriers of SCTP packets that the application implements.

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
pub struct OutgoingPacket<'a> {
    /// The destination: the peer's address and UDP port (0 over raw IP).
    pub to: SocketAddr,
    /// The local address to send from; `None`: that of [`PacketSocket::local_addr`].
    pub from: Option<IpAddr>,
    /// ECN field of the IP header, if the carrier has one.
    pub ecn: Ecn,
    /// The SCTP packet: common header and chunks.
    pub bytes: &'a [u8],
}

/// Metadata of a received packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceivedPacket {
    /// Length of the packet, bytes; a length of 0 is counted as a broken packet.
    pub len: usize,
    /// The sender's address and UDP port (0 over raw IP).
    pub from: SocketAddr,
    /// The local destination address; `None`: that of [`PacketSocket::local_addr`].
    pub to: Option<IpAddr>,
    /// ECN field of the IP header; `NotEct` if it is unknown.
    pub ecn: Ecn,
}

impl ReceivedPacket {
    /// A packet of `len` bytes from `from`, sent to the address of the socket, without ECN.
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
/// lost, duplicated and reordered. Its methods are called from the endpoint's task and must not
/// block.
pub trait PacketSocket: Send + 'static {
    /// The local address of the packets, and the UDP port that peers see (0 over raw IP). The value
    /// must not change.
    fn local_addr(&self) -> SocketAddr;

    /// Accepts a packet now, or when there is space for it. Packets have up to about 65,500 bytes;
    /// the actual maximum is the path MTU that was discovered.
    ///
    /// # Errors
    /// The packet is lost, and counted
    /// ([`EndpointStatistics::send_errors`](crate::EndpointStatistics::send_errors)); the next
    /// packet is sent nevertheless. If there is no space, the method should return `Pending`, not
    /// an error.
    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        packet: &OutgoingPacket<'_>,
    ) -> Poll<io::Result<()>>;

    /// Writes the next packet into `buffer` (65,536 bytes), now or when one arrives. A larger
    /// packet should be truncated.
    ///
    /// # Errors
    /// No packet was received; the method is called again immediately. A socket that will receive
    /// no more packets should stay `Pending`.
    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<ReceivedPacket>>;
}

/// A packet socket of the application; only one task at a time uses it.
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
        let packet = OutgoingPacket {
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
