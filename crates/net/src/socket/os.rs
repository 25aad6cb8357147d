//! Sockets of the system: UDP or raw IP.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Poll, ready};

#[cfg(target_os = "linux")]
use nix::libc::{EINVAL, EIO};
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSockRef, UdpSocketState};
#[cfg(target_os = "linux")]
use rustix::{io::Errno, net::SendFlags};
use socket2::{Domain, Protocol, Socket as RawSocket, Type};

#[cfg(target_os = "linux")]
use super::dscp;
#[cfg(target_os = "linux")]
use super::reported::{self, Reported};
use super::{SCTP, Socket, in_zone, ip};
use crate::config::{Carrier, Config};
use crate::error::BindError;
use crate::runtime::{AsSystemSocket, AsyncSocket, Readiness, ReadinessHint, Runtime};

/// Maximum number of repetitions of a call that returned the error of another datagram.
const MAX_REPORTED: usize = 4;
/// Number of receive calls after a reported error that another pending error may have ended early.
/// If such a call fills fewer buffers than it was given, the socket is not yet regarded as empty.
const MAX_UNSURE: u32 = 64;

/// A bound socket of the system that a runtime watches.
#[derive(Debug)]
pub(crate) struct OsSocket {
    /// The socket, which may be raw, because the system calls are the same.
    io: Box<dyn AsyncSocket>,
    state: UdpSocketState,
    /// The address to which the socket is bound; unspecified for all addresses.
    local: IpAddr,
    /// UDP port; 0 for raw IP.
    port: u16,
    raw: bool,
    /// True if this crate has opened the socket, which therefore is not connected.
    own: bool,
    /// `reports`: the socket has an error queue of ICMP messages. `reported`: a call indicated that
    /// the queue may have entries.
    #[cfg(target_os = "linux")]
    reports: bool,
    reported: AtomicBool,
    /// Remaining number of receive calls that a pending error may have ended early, see
    /// `MAX_UNSURE`.
    unsure: AtomicU32,
    offload: bool,
    /// The DSCP of sent packets.
    dscp: u8,
}

/// A bound socket that no runtime watches yet.
#[derive(Debug)]
pub(crate) struct Bound {
    socket: RawSocket,
    address: IpAddr,
    /// UDP port; 0 for raw IP.
    port: u16,
}

impl Bound {
    /// Opens and binds a socket. `shares`: other sockets are bound to the same address and port.
    ///
    /// # Errors
    /// The error of the system.
    pub(crate) fn open(
        address: IpAddr,
        port: u16,
        config: &Config,
        shares: bool,
    ) -> Result<Self, BindError> {
        let raw = config.carrier == Carrier::Ip;
        let failed = |source: io::Error| {
            if raw && source.kind() == io::ErrorKind::PermissionDenied {
                BindError::RawNotAllowed(source)
            } else {
                BindError::Socket {
                    address,
                    port,
                    source,
                }
            }
        };
        let domain = if address.is_ipv4() {
            Domain::IPV4
        } else {
            Domain::IPV6
        };
        let (kind, protocol) = if raw {
            (Type::RAW, Protocol::from(SCTP))
        } else {
            (Type::DGRAM, Protocol::UDP)
        };
        let socket = RawSocket::new(domain, kind, Some(protocol)).map_err(failed)?;
        // UDP sockets are opened for each address family separately, so that IPv4 addresses never
        // appear in mapped form. Raw sockets always have one family.
        if address.is_ipv6() && !raw {
            socket.set_only_v6(true).map_err(failed)?;
        }
        // Errors are ignored: if the system does not permit the size, it keeps its own.
        let _ = socket.set_recv_buffer_size(config.socket_buffer);
        let _ = socket.set_send_buffer_size(config.socket_buffer);
        if shares {
            share(&socket).map_err(failed)?;
        }
        socket
            .bind(&in_zone(SocketAddr::new(address, port), config.zone).into())
            .map_err(failed)?;
        let bound = socket.local_addr().map_err(failed)?.as_socket();
        Ok(Self {
            socket,
            address,
            port: bound.filter(|_| !raw).map_or(0, |it| it.port()),
        })
    }

    /// UDP port; 0 for raw IP.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The address to which the socket is bound.
    pub(crate) fn local(&self) -> SocketAddr {
        SocketAddr::new(self.address, self.port)
    }

    /// The socket.
    #[cfg(target_os = "linux")]
    pub(crate) fn socket(&self) -> &RawSocket {
        &self.socket
    }

    /// Allows other sockets to be bound to the same address and port from now on.
    ///
    /// # Errors
    /// The error of the system.
    pub(crate) fn share(&self) -> Result<(), BindError> {
        share(&self.socket).map_err(|source| self.failed(source))
    }

    /// Registers the socket with a runtime.
    ///
    /// # Errors
    /// The error of the system or of the runtime.
    pub(crate) fn watched(
        self,
        config: &Config,
        runtime: &dyn Runtime,
    ) -> Result<Socket, BindError> {
        let (address, port) = (self.address, self.port);
        let opened = OsSocket::adopt(self.socket, address, config, runtime);
        let opened = opened.map_err(|source| BindError::Socket {
            address,
            port,
            source,
        })?;
        without_destinations(&opened.io, address);
        Ok(Socket::System(Box::new(OsSocket {
            own: true,
            #[cfg(target_os = "linux")]
            reports: !opened.raw && reported::enable(&opened.io, address),
            ..opened
        })))
    }

    fn failed(&self, source: io::Error) -> BindError {
        BindError::Socket {
            address: self.address,
            port: self.port,
            source,
        }
    }
}

/// Sets the option by which several sockets can be bound to one address and port. All of them must
/// belong to this user.
fn share(socket: &RawSocket) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    return socket.set_reuse_port(true);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = socket;
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl OsSocket {
    /// Wraps a socket that is bound to `address`.
    ///
    /// # Errors
    /// The error of the system.
    pub(crate) fn adopt(
        socket: RawSocket,
        address: IpAddr,
        config: &Config,
        runtime: &dyn Runtime,
    ) -> io::Result<Self> {
        let raw = config.carrier == Carrier::Ip;
        // Sets the socket options that a driver needs, including non-blocking mode.
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        without_timestamps(&socket);
        let port = match socket.local_addr()?.as_socket() {
            Some(bound) if !raw => bound.port(),
            _ => 0,
        };
        let io = runtime.watch(socket.into())?;
        Ok(Self {
            io,
            state,
            local: address,
            port,
            raw,
            own: false,
            #[cfg(target_os = "linux")]
            reports: false,
            reported: AtomicBool::new(false),
            unsure: AtomicU32::new(0),
            offload: config.offload && !raw,
            dscp: config.dscp,
        })
    }

    /// The address to which the socket is bound.
    pub(crate) fn local(&self) -> SocketAddr {
        SocketAddr::new(self.local, self.port)
    }

    /// Maximum number of packets that one call sends.
    pub(crate) fn max_segments(&self) -> usize {
        if self.offload {
            self.state.max_gso_segments()
        } else {
            1
        }
    }

    /// Returns true if one call may receive several packets of equal size.
    pub(crate) fn receives_batches(&self) -> bool {
        !self.raw && self.state.gro_segments() > 1
    }

    /// Sends a run of packets now, or when the socket is writable.
    ///
    /// # Errors
    /// The error of the system; the packets are lost then.
    pub(crate) fn poll_send(
        &self,
        cx: &mut Context<'_>,
        transmit: &Transmit<'_>,
    ) -> Poll<io::Result<()>> {
        let mut call = || self.try_send(transmit).map(|()| ReadinessHint::MayBeReady);
        self.io.poll_io(cx, Readiness::Write, &mut call)
    }

    /// Sends a run of packets, or fails with `WouldBlock`.
    ///
    /// # Errors
    /// The error of the system.
    pub(crate) fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let mut sent = self.send_once(transmit);
        // A call may return the error of an earlier datagram instead of its result.
        for _ in 0..MAX_REPORTED {
            match &sent {
                Err(error) if self.is_reported(error) => sent = self.send_once(transmit),
                _ => break,
            }
        }
        sent
    }

    /// Returns true if an error belongs to an earlier datagram, so that the call itself had no
    /// effect.
    fn is_reported(&self, error: &io::Error) -> bool {
        #[cfg(target_os = "linux")]
        if self.reports && reported::may_be(error) {
            self.reported.store(true, Ordering::Relaxed);
            self.unsure.store(MAX_UNSURE, Ordering::Relaxed);
            return true;
        }
        let _ = error;
        false
    }

    /// The next ICMP message about a datagram of this socket; checked only after a call indicated
    /// that there may be one.
    #[cfg(target_os = "linux")]
    pub(crate) fn next_reported(&self) -> Option<Reported> {
        if !self.reported.load(Ordering::Relaxed) {
            return None;
        }
        let next = Reported::next(&self.io);
        if next.is_none() {
            self.reported.store(false, Ordering::Relaxed);
        }
        next
    }

    fn send_once(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        if self.dscp != 0 {
            match dscp::send(&self.io, transmit, self.dscp) {
                // `quinn_udp` returns this error if the interface lacks GSO, and disables GSO: the
                // packets are sent one by one.
                Err(error)
                    if transmit.segment_size.is_some()
                        && matches!(error.raw_os_error(), Some(EIO | EINVAL)) => {}
                result => return result,
            }
        }
        #[cfg(target_os = "linux")]
        if self.own && is_plain(transmit) {
            match rustix::net::sendto(
                &self.io,
                transmit.contents,
                SendFlags::empty(),
                &transmit.destination,
            ) {
                Err(Errno::INTR) => {}
                sent => return sent.map(|_| ()).map_err(io::Error::from),
            }
        }
        self.state.try_send(UdpSockRef::from(&self.io), transmit)
    }

    /// Enables or disables IP fragmentation of packets that are sent from now on. Path MTU
    /// discovery disables it, because probes must not be delivered in fragments (RFC 8899 §3, item
    /// 1). Has no effect if the system has no such option.
    pub(crate) fn allow_fragmentation(&self, allowed: bool) {
        #[cfg(target_os = "linux")]
        {
            use rustix::net::sockopt;
            // Uses `PROBE`, because with the other values the system relies on ICMP messages, which
            // may be forged, more than the protocol does.
            let _ = if self.local.is_ipv4() {
                let value = match allowed {
                    true => sockopt::Ipv4PathMtuDiscovery::DONT,
                    false => sockopt::Ipv4PathMtuDiscovery::PROBE,
                };
                sockopt::set_ip_mtu_discover(&self.io, value)
            } else {
                let value = match allowed {
                    true => sockopt::Ipv6PathMtuDiscovery::DONT,
                    false => sockopt::Ipv6PathMtuDiscovery::PROBE,
                };
                sockopt::set_ipv6_mtu_discover(&self.io, value)
            };
        }
        #[cfg(not(target_os = "linux"))]
        let _ = allowed;
    }

    /// Receives into `buffers`, now or when data arrives. Returns the number of filled buffers.
    ///
    /// # Errors
    /// The error of the system.
    pub(crate) fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let mut count = 0;
        let mut call = || {
            let mut received = (self.state).recv(UdpSockRef::from(&self.io), buffers, meta);
            for _ in 0..MAX_REPORTED {
                match &received {
                    Err(error) if self.is_reported(error) => {
                        received = (self.state).recv(UdpSockRef::from(&self.io), buffers, meta);
                    }
                    _ => break,
                }
            }
            count = received?;
            Ok(self.readiness_after(count, buffers.len()))
        };
        ready!(self.io.poll_io(cx, Readiness::Read, &mut call))?;
        Poll::Ready(Ok(count))
    }

    /// Hint after a call that filled `count` of `buffers` buffers. If it filled fewer, the socket
    /// is empty, or a pending error ended the call. Such errors are possible if the application has
    /// connected the socket, or if errors occurred recently.
    fn readiness_after(&self, count: usize, buffers: usize) -> ReadinessHint {
        if !self.own || count >= buffers.min(BATCH_SIZE) {
            return ReadinessHint::MayBeReady;
        }
        match self.unsure.load(Ordering::Relaxed) {
            0 => ReadinessHint::NotReady,
            left => {
                // Load and store suffice, because only one task receives.
                self.unsure.store(left - 1, Ordering::Relaxed);
                ReadinessHint::MayBeReady
            }
        }
    }

    /// Range of the SCTP packet in the received data; `None` if it contains no whole packet.
    pub(crate) fn packet_range(&self, received: &[u8]) -> Option<std::ops::Range<usize>> {
        if self.raw && self.local.is_ipv4() {
            ip::payload_of_v4(received)
        } else {
            Some(0..received.len())
        }
    }
}

/// Returns true if a packet needs no control message, because the system sends such packets faster.
/// The TOS field is then 0, because no option sets it on these sockets.
#[cfg(target_os = "linux")]
fn is_plain(transmit: &Transmit<'_>) -> bool {
    (transmit.ecn, transmit.segment_size, transmit.src_ip) == (None, None, None)
}

/// Disables the control message with each packet's destination address if the socket is bound to a
/// single address.
fn without_destinations(socket: &impl AsSystemSocket, address: IpAddr) {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        use nix::sys::socket::{setsockopt, sockopt};
        // A failure has no other effect than that each packet carries an address that is known
        // anyway.
        let _ = match address {
            address if address.is_unspecified() => Ok(()),
            IpAddr::V4(_) => setsockopt(socket, sockopt::Ipv4PacketInfo, &false),
            IpAddr::V6(_) => setsockopt(socket, sockopt::Ipv6RecvPacketInfo, &false),
        };
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let _ = (socket, address);
}

/// Disables the arrival timestamps that `quinn_udp` enables. The driver does not use these
/// messages, and with them the 88 bytes that `quinn_udp` reserves for control messages are too few
/// for a run of packets (time 32, GRO 24, IP_PKTINFO 32, IP_TOS 24): the kernel then omits the last
/// message, which is the ECN field.
fn without_timestamps(socket: &socket2::Socket) {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        use nix::sys::socket::{setsockopt, sockopt::ReceiveTimestampns};
        // Fails on kernels without the option, which send no such message.
        let _ = setsockopt(socket, ReceiveTimestampns, &false);
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let _ = socket;
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::Ipv4Addr;

    use rustix::net::sockopt::{Ipv4PathMtuDiscovery, ip_mtu_discover};

    use super::*;

    fn open(address: IpAddr) -> OsSocket {
        let config = Config::default();
        let runtime = crate::runtime::current().expect("tokio");
        let bound = Bound::open(address, 0, &config, false).expect("loopback");
        match bound.watched(&config, &*runtime).expect("loopback") {
            Socket::System(socket) => *socket,
            Socket::Caller(_) => unreachable!("it is the system's"),
        }
    }

    /// After a call that left buffers unused, the socket counts as empty; it is read again only if
    /// an error may have ended the call.
    #[tokio::test]
    async fn a_call_reports_that_nothing_is_left_where_that_is_certain() {
        let config = Config::default();
        let runtime = crate::runtime::current().expect("tokio");
        let own = open(Ipv4Addr::LOCALHOST.into());
        assert_eq!(own.readiness_after(3, 4), ReadinessHint::NotReady);
        assert_eq!(own.readiness_after(4, 4), ReadinessHint::MayBeReady);
        let given = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback");
        let given = OsSocket::adopt(given.into(), own.local, &config, &*runtime);
        assert_eq!(
            given.expect("loopback").readiness_after(3, 4),
            ReadinessHint::MayBeReady
        );
    }

    /// Received packets do not depend on whether the sender used control messages, or whether
    /// destination addresses are reported.
    #[tokio::test]
    async fn plain_packets_arrive_as_others_do() {
        for (all, one) in [("0.0.0.0", "127.0.0.1"), ("::", "::1")] {
            let [all, one]: [IpAddr; 2] = [all, one].map(|it| it.parse().expect("an address"));
            let (sender, bound, anywhere) = (open(one), open(one), open(all));
            for (receiver, told) in [(bound, None), (anywhere, Some(one))] {
                for ecn in [None, Some(quinn_udp::EcnCodepoint::Ect0), None] {
                    let transmit = Transmit {
                        destination: SocketAddr::new(one, receiver.port),
                        ecn,
                        contents: b"a packet",
                        segment_size: None,
                        src_ip: None,
                    };
                    assert_eq!(is_plain(&transmit), ecn.is_none());
                    sender.try_send(&transmit).expect("room");
                    let (mut bytes, mut meta) = ([0; 64], [RecvMeta::default()]);
                    let count = std::future::poll_fn(|cx| {
                        let mut buffers = [IoSliceMut::new(&mut bytes)];
                        receiver.poll_receive(cx, &mut buffers, &mut meta)
                    });
                    assert_eq!(count.await.expect("it comes"), 1);
                    let [meta] = meta;
                    let came = (meta.addr, meta.ecn, meta.dst_ip);
                    assert_eq!(came, (sender.local(), ecn, told), "to {receiver:?}");
                    assert_eq!(&bytes[..meta.len], b"a packet");
                }
            }
        }
    }

    #[tokio::test]
    async fn ip_fragments_only_where_it_is_let() {
        let socket = open(Ipv4Addr::LOCALHOST.into());
        let setting = || ip_mtu_discover(&socket.io).expect("a setting");
        assert_eq!(setting(), Ipv4PathMtuDiscovery::PROBE);
        socket.allow_fragmentation(true);
        assert_eq!(setting(), Ipv4PathMtuDiscovery::DONT);
        socket.allow_fragmentation(false);
        assert_eq!(setting(), Ipv4PathMtuDiscovery::PROBE);
    }
}
