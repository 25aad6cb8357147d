//! The sockets of an endpoint: UDP or raw, one for each local address.

mod icmp;
mod ip;
#[cfg(target_os = "linux")]
mod marked;

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::task::{Context, Poll, ready};

#[cfg(target_os = "linux")]
use nix::libc::{EINVAL, EIO};
use quinn_udp::{RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use socket2::{Domain, Protocol, Socket as RawSocket, Type};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use crate::config::{Carrier, Config};
use crate::error::BindError;
pub(crate) use icmp::IcmpSocket;

/// IP protocol number of SCTP.
const SCTP: i32 = 132;
/// Attempts to find one free UDP port for all addresses, where any port will do.
const PORT_ATTEMPTS: usize = 16;

/// One socket.
#[derive(Debug)]
pub(crate) struct Socket {
    /// Raw ones too: the calls are the same.
    io: UdpSocket,
    state: UdpSocketState,
    /// The address it is bound to; unspecified for all.
    local: IpAddr,
    /// Its UDP port; 0 for raw IP.
    port: u16,
    raw: bool,
    offload: bool,
    /// Above the ECN field of what is sent.
    dscp: u8,
}

impl Socket {
    /// Opens and binds one.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(address: IpAddr, port: u16, config: &Config) -> Result<Self, BindError> {
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
        socket
            .bind(&in_zone(SocketAddr::new(address, port), config.zone).into())
            .map_err(failed)?;
        let state = UdpSocketState::new(UdpSockRef::from(&socket)).map_err(failed)?;
        without_timestamps(&socket);
        let bound = socket.local_addr().map_err(failed)?;
        let port = if raw {
            0
        } else {
            bound.as_socket().map_or(port, |bound| bound.port())
        };
        let io = UdpSocket::from_std(socket.into()).map_err(failed)?;
        Ok(Self {
            io,
            state,
            local: address,
            port,
            raw,
            offload: config.offload && !raw,
            dscp: config.dscp,
        })
    }

    /// The address it is bound to.
    pub fn local(&self) -> SocketAddr {
        SocketAddr::new(self.local, self.port)
    }

    /// The most packets that one call sends.
    pub fn most_segments(&self) -> usize {
        if self.offload {
            self.state.max_gso_segments()
        } else {
            1
        }
    }

    /// Whether one call may bring several packets of equal size.
    pub fn joins_packets(&self) -> bool {
        !self.raw && self.state.gro_segments() > 1
    }

    /// Sends, now or when the socket takes more.
    ///
    /// # Errors
    /// What the system says; the packets are lost then.
    pub fn poll_send(&self, cx: &mut Context<'_>, transmit: &Transmit<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.io.poll_send_ready(cx))?;
            let sent = self
                .io
                .try_io(Interest::WRITABLE, || self.try_send(transmit));
            if !would_block(&sent) {
                return Poll::Ready(sent);
            }
        }
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        if self.dscp != 0 {
            match marked::send(&self.io, transmit, self.dscp) {
                // What an interface without GSO answers: `quinn_udp` learns so that there is none, and packets go one by one.
                Err(error)
                    if transmit.segment_size.is_some()
                        && matches!(error.raw_os_error(), Some(EIO | EINVAL)) => {}
                result => return result,
            }
        }
        self.state.try_send(UdpSockRef::from(&self.io), transmit)
    }

    /// Lets IP fragment what is sent from now on, or forbids it: so that a path which carries less does not bring it
    /// in pieces (RFC 8899 §3, item 1). Where the system knows no such thing nothing changes.
    pub fn let_fragment(&self, allowed: bool) {
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
    pub fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.io.poll_recv_ready(cx))?;
            let received = self.io.try_io(Interest::READABLE, || {
                self.state.recv(UdpSockRef::from(&self.io), buffers, meta)
            });
            if !would_block(&received) {
                return Poll::Ready(received);
            }
        }
    }

    /// Where the SCTP packet lies in what was received; `None` if that is no whole packet.
    pub fn packet_within(&self, received: &[u8]) -> Option<std::ops::Range<usize>> {
        if self.raw && self.local.is_ipv4() {
            ip::payload_of_v4(received)
        } else {
            Some(0..received.len())
        }
    }

    /// Our address that a packet came to.
    pub fn local_of(&self, meta: &RecvMeta) -> IpAddr {
        match meta.dst_ip {
            Some(address) => address.to_canonical(),
            None => self.local,
        }
    }
}

/// The address with the zone that a link-local one needs (RFC 4007 §6).
fn in_zone(address: SocketAddr, zone: Option<u32>) -> SocketAddr {
    match (address, zone) {
        (SocketAddr::V6(v6), Some(zone)) if v6.ip().is_unicast_link_local() => {
            SocketAddrV6::new(*v6.ip(), v6.port(), v6.flowinfo(), zone).into()
        }
        _ => address,
    }
}

fn would_block<T>(result: &io::Result<T>) -> bool {
    matches!(result, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}

/// All sockets of an endpoint.
#[derive(Debug)]
pub(crate) struct Sockets {
    all: Vec<Socket>,
    /// One for each family that raw IP uses.
    icmp: Vec<IcmpSocket>,
    /// The interface of link-local addresses.
    zone: Option<u32>,
}

impl Sockets {
    /// Opens and binds what `config` asks for.
    pub fn open(config: &Config) -> Result<Self, BindError> {
        let any_port = config.carrier != Carrier::Ip && config.carrier.port() == 0;
        let attempts = if any_port { PORT_ATTEMPTS } else { 1 };
        let mut result = Self::try_open(config);
        for _ in 1..attempts {
            // The port that the system chose for the first address may be taken on another.
            match &result {
                Err(BindError::Socket { source, .. })
                    if source.kind() == io::ErrorKind::AddrInUse =>
                {
                    result = Self::try_open(config);
                }
                _ => break,
            }
        }
        result
    }

    fn try_open(config: &Config) -> Result<Self, BindError> {
        let mut port = config.carrier.port();
        let mut all = Vec::new();
        if config.addresses.is_empty() {
            let v4 = Socket::open(Ipv4Addr::UNSPECIFIED.into(), port, config)?;
            port = v4.port;
            all.push(v4);
            // A host may have no IPv6.
            match Socket::open(Ipv6Addr::UNSPECIFIED.into(), port, config) {
                Ok(v6) => all.push(v6),
                Err(BindError::Socket { source, .. })
                    if source.kind() != io::ErrorKind::AddrInUse => {}
                Err(error) => return Err(error),
            }
        }
        for &address in &config.addresses {
            let socket = Socket::open(address, port, config)?;
            port = socket.port;
            all.push(socket);
        }
        let mut icmp = Vec::new();
        for v6 in [false, true] {
            let used = all.iter().any(|socket| socket.local.is_ipv6() == v6);
            if used && config.carrier == Carrier::Ip {
                // ICMP is a hint, and is done without where the system does not grant it.
                icmp.extend(IcmpSocket::open(v6).ok());
            }
        }
        Ok(Self {
            all,
            icmp,
            zone: config.zone,
        })
    }

    /// Where the network tells of packets of ours.
    pub fn icmp(&self) -> impl Iterator<Item = &IcmpSocket> {
        self.icmp.iter()
    }

    /// One more, for an address that came later.
    pub fn add(&mut self, socket: Socket) {
        self.all.push(socket);
    }

    /// The sockets, in the order of the addresses.
    pub fn iter(&self) -> impl Iterator<Item = &Socket> {
        self.all.iter()
    }

    /// The socket of that number.
    pub fn get(&self, index: usize) -> &Socket {
        &self.all[index]
    }

    /// Where the system is asked to send what is for `remote`.
    pub fn destination(&self, remote: SocketAddr) -> SocketAddr {
        in_zone(remote, self.zone)
    }

    /// The socket that sends from `local` to `remote`, and the source address to ask for.
    pub fn route(&self, local: IpAddr, remote: IpAddr) -> Option<(usize, Option<IpAddr>)> {
        let of_family = |socket: &Socket| socket.local.is_ipv4() == remote.is_ipv4();
        if local.is_unspecified() {
            return self.all.iter().position(of_family).map(|at| (at, None));
        }
        let bound = self.all.iter().position(|socket| socket.local == local);
        if let Some(at) = bound {
            return Some((at, None));
        }
        self.all
            .iter()
            .position(|socket| of_family(socket) && socket.local.is_unspecified())
            .map(|at| (at, Some(local)))
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::net::sockopt::{Ipv4PathMtuDiscovery, ip_mtu_discover};

    use super::*;

    #[test]
    fn only_link_local_addresses_have_a_zone() {
        let zoned = |text: &str| in_zone(text.parse().expect("an address"), Some(7)).to_string();
        assert_eq!(zoned("[fe80::1]:9899"), "[fe80::1%7]:9899");
        assert_eq!(zoned("[2001:db8::1]:9899"), "[2001:db8::1]:9899");
        assert_eq!(zoned("192.0.2.1:9899"), "192.0.2.1:9899");
    }

    #[tokio::test]
    async fn ip_fragments_only_where_it_is_let() {
        let config = Config::default();
        let socket = Socket::open(Ipv4Addr::LOCALHOST.into(), 0, &config).expect("loopback");
        let setting = || ip_mtu_discover(&socket.io).expect("a setting");
        assert_eq!(setting(), Ipv4PathMtuDiscovery::PROBE);
        socket.let_fragment(true);
        assert_eq!(setting(), Ipv4PathMtuDiscovery::DONT);
        socket.let_fragment(false);
        assert_eq!(setting(), Ipv4PathMtuDiscovery::PROBE);
    }
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
