//! Sockets of the system: UDP, or raw.

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

/// How often a call is made again that told of other datagrams.
const MAX_REPORTED: usize = 4;
/// Calls after one that did so which may have been ended by another such message.
const MAX_UNSURE: u32 = 64;

/// One socket of the system's.
#[derive(Debug)]
pub(crate) struct OsSocket {
    /// Raw ones too: the calls are the same.
    io: Box<dyn AsyncSocket>,
    state: UdpSocketState,
    /// The address it is bound to; unspecified for all.
    local: IpAddr,
    /// Its UDP port; 0 for raw IP.
    port: u16,
    raw: bool,
    /// It was opened here, and is not connected.
    own: bool,
    /// It has a queue of what the network says of its datagrams; a call said that something may be in it.
    #[cfg(target_os = "linux")]
    reports: bool,
    reported: AtomicBool,
    /// So many calls more may have been ended by such a message.
    unsure: AtomicU32,
    offload: bool,
    /// Above the ECN field of what is sent.
    dscp: u8,
}

/// A socket that is bound, and that no runtime watches yet.
#[derive(Debug)]
pub(crate) struct Bound {
    socket: RawSocket,
    address: IpAddr,
    /// Its UDP port; 0 for raw IP.
    port: u16,
}

impl Bound {
    /// Opens and binds one. `shares`: others have the same address and port.
    ///
    /// # Errors
    /// What the system says.
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
        // Both families have sockets of their own, so that an address always is what it looks like. Raw ones have anyway.
        if address.is_ipv6() && !raw {
            socket.set_only_v6(true).map_err(failed)?;
        }
        // What the system does not grant is done without.
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

    /// Its UDP port; 0 for raw IP.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The address it is bound to.
    pub(crate) fn local(&self) -> SocketAddr {
        SocketAddr::new(self.address, self.port)
    }

    /// The socket.
    #[cfg(target_os = "linux")]
    pub(crate) fn socket(&self) -> &RawSocket {
        &self.socket
    }

    /// Lets others be bound to its address and port from now on.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn share(&self) -> Result<(), BindError> {
        share(&self.socket).map_err(|source| self.failed(source))
    }

    /// Has it watched by a runtime.
    ///
    /// # Errors
    /// What the system or the runtime says.
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
            reports: !opened.raw && reported::ask(&opened.io, address),
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

/// Lets several sockets have one address and port. They are this process's, or at least this user's.
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
    /// Takes a socket that is bound to `address`.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn adopt(
        socket: RawSocket,
        address: IpAddr,
        config: &Config,
        runtime: &dyn Runtime,
    ) -> io::Result<Self> {
        let raw = config.carrier == Carrier::Ip;
        // Does what a driver needs of it, not to wait among that.
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

    /// The address it is bound to.
    pub(crate) fn local(&self) -> SocketAddr {
        SocketAddr::new(self.local, self.port)
    }

    /// The most packets that one call sends.
    pub(crate) fn most_segments(&self) -> usize {
        if self.offload {
            self.state.max_gso_segments()
        } else {
            1
        }
    }

    /// Whether one call may bring several packets of equal size.
    pub(crate) fn joins_packets(&self) -> bool {
        !self.raw && self.state.gro_segments() > 1
    }

    /// Sends, now or when the socket takes more.
    ///
    /// # Errors
    /// What the system says; the packets are lost then.
    pub(crate) fn poll_send(
        &self,
        cx: &mut Context<'_>,
        transmit: &Transmit<'_>,
    ) -> Poll<io::Result<()>> {
        let mut call = || self.try_send(transmit).map(|()| ReadinessHint::MayBeReady);
        self.io.poll_io(cx, Readiness::Write, &mut call)
    }

    /// Sends, or fails with `WouldBlock`.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let mut sent = self.send_once(transmit);
        // Of each datagram before, a message may be told in place of what this call does.
        for _ in 0..MAX_REPORTED {
            match &sent {
                Err(error) if self.is_reported(error) => sent = self.send_once(transmit),
                _ => break,
            }
        }
        sent
    }

    /// Whether an error of a call is of another datagram, so that the call did nothing.
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

    /// What the network says of datagrams from here, where a call said that there is something.
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
                // What an interface without GSO answers: `quinn_udp` learns so that there is none, and packets go one by one.
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

    /// Lets IP fragment what is sent from now on, or forbids it: so that a path which carries less does not bring it
    /// in pieces (RFC 8899 §3, item 1). Where the system knows no such thing nothing changes.
    pub(crate) fn let_fragment(&self, allowed: bool) {
        #[cfg(target_os = "linux")]
        {
            use rustix::net::sockopt;
            // Beside `PROBE` all values believe ICMP, or forgers of it, more than the protocol does.
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

    /// Receives into `buffers`, now or when something comes. Says how many were filled.
    ///
    /// # Errors
    /// What the system says.
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
            Ok(self.left_by(count, buffers.len()))
        };
        ready!(self.io.poll_io(cx, Readiness::Read, &mut call))?;
        Poll::Ready(Ok(count))
    }

    /// What a call left that had `buffers` to fill and filled `count`. Less than all: it found no more, or an error that waited. The latter may be of a
    /// socket that is the caller's (connected), and of one that had such errors lately.
    fn left_by(&self, count: usize, buffers: usize) -> ReadinessHint {
        if !self.own || count >= buffers.min(BATCH_SIZE) {
            return ReadinessHint::MayBeReady;
        }
        match self.unsure.load(Ordering::Relaxed) {
            0 => ReadinessHint::NotReady,
            left => {
                // One task receives, so that no other counts meanwhile.
                self.unsure.store(left - 1, Ordering::Relaxed);
                ReadinessHint::MayBeReady
            }
        }
    }

    /// Where the SCTP packet lies in what was received; `None` if that is no whole packet.
    pub(crate) fn packet_within(&self, received: &[u8]) -> Option<std::ops::Range<usize>> {
        if self.raw && self.local.is_ipv4() {
            ip::payload_of_v4(received)
        } else {
            Some(0..received.len())
        }
    }
}

/// Whether a packet is one that asks for nothing beside its destination: the system takes it faster without control messages. The TOS field is
/// 0 without one, too, on a socket that nobody has set it for.
#[cfg(target_os = "linux")]
fn is_plain(transmit: &Transmit<'_>) -> bool {
    (transmit.ecn, transmit.segment_size, transmit.src_ip) == (None, None, None)
}

/// Turns off what tells of each packet the address that it came to, where that is the one address of the socket.
fn without_destinations(socket: &impl AsSystemSocket, address: IpAddr) {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        use nix::sys::socket::{setsockopt, sockopt};
        // Where it is refused, each packet tells what is known.
        let _ = match address {
            address if address.is_unspecified() => Ok(()),
            IpAddr::V4(_) => setsockopt(socket, sockopt::Ipv4PacketInfo, &false),
            IpAddr::V6(_) => setsockopt(socket, sockopt::Ipv6RecvPacketInfo, &false),
        };
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let _ = (socket, address);
}

/// Turns off the time of arrival that `quinn_udp` asks for. Nothing here reads it, and with it the 88 bytes that `quinn_udp` keeps for
/// control messages do not hold all of a run of packets (time 32, GRO 24, IP_PKTINFO 32, IP_TOS 24): the kernel then leaves out
/// the last, which is the ECN field.
fn without_timestamps(socket: &socket2::Socket) {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        use nix::sys::socket::{setsockopt, sockopt::ReceiveTimestampns};
        // A kernel that has no such option sends no such message.
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
            Socket::Given(_) => unreachable!("it is the system's"),
        }
    }

    /// A call that leaves buffers empty has found nothing more, unless an error may have ended it: then the socket is asked again.
    #[tokio::test]
    async fn a_call_tells_that_nothing_is_left_where_that_is_certain() {
        let config = Config::default();
        let runtime = crate::runtime::current().expect("tokio");
        let own = open(Ipv4Addr::LOCALHOST.into());
        assert_eq!(own.left_by(3, 4), ReadinessHint::NotReady);
        assert_eq!(own.left_by(4, 4), ReadinessHint::MayBeReady);
        let given = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback");
        let given = OsSocket::adopt(given.into(), own.local, &config, &*runtime);
        assert_eq!(
            given.expect("loopback").left_by(3, 4),
            ReadinessHint::MayBeReady
        );
    }

    /// What arrives is the same whether a packet went with control messages or without, and whether the receiver is told of its address or
    /// has only one.
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
        socket.let_fragment(true);
        assert_eq!(setting(), Ipv4PathMtuDiscovery::DONT);
        socket.let_fragment(false);
        assert_eq!(setting(), Ipv4PathMtuDiscovery::PROBE);
    }
}
