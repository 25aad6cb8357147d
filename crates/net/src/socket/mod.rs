//! The sockets of an endpoint: UDP or raw sockets, one for each local address.

#[cfg(target_os = "linux")]
mod dscp;
mod icmp;
mod ip;
mod os;
mod packet_socket;
#[cfg(target_os = "linux")]
mod reported;
#[cfg(target_os = "linux")]
mod reuseport;

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::task::{Context, Poll};

use anabranch_sctp::Icmp;
use quinn_udp::{RecvMeta, Transmit};
use socket2::Socket as RawSocket;

use crate::config::{Carrier, Config};
use crate::error::BindError;
use crate::runtime::Runtime;
pub(crate) use icmp::IcmpSocket;
pub(crate) use os::Bound;
use os::OsSocket;
use packet_socket::CallerSocket;
pub use packet_socket::{OutgoingPacket, PacketSocket, ReceivedPacket};

/// IP protocol number of SCTP.
const SCTP: i32 = 132;
/// Number of attempts to find a UDP port that is free at all addresses, if the port is not fixed.
const PORT_ATTEMPTS: usize = 16;

/// A socket of an endpoint: one of the system, or a packet socket of the application.
#[derive(Debug)]
pub(crate) enum Socket {
    System(Box<OsSocket>),
    Caller(CallerSocket),
}

impl Socket {
    /// Opens and binds a socket of the system. `shares`: other sockets are bound to the same
    /// address and port.
    ///
    /// # Errors
    /// The error of the system.
    pub(crate) fn open(
        address: IpAddr,
        port: u16,
        config: &Config,
        shares: bool,
        runtime: &dyn Runtime,
    ) -> Result<Self, BindError> {
        let bound = Bound::open(address, port, config, shares)?;
        bound.watched(config, runtime)
    }

    /// The address to which it is bound.
    pub(crate) fn local(&self) -> SocketAddr {
        match self {
            Self::System(socket) => socket.local(),
            Self::Caller(socket) => socket.local(),
        }
    }

    /// Maximum number of packets that one call sends.
    pub(crate) fn max_segments(&self) -> usize {
        match self {
            Self::System(socket) => socket.max_segments(),
            Self::Caller(_) => 1,
        }
    }

    /// Returns true if one call may receive several packets of equal size.
    pub(crate) fn receives_batches(&self) -> bool {
        match self {
            Self::System(socket) => socket.receives_batches(),
            Self::Caller(_) => false,
        }
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
        match self {
            Self::System(socket) => socket.poll_send(cx, transmit),
            Self::Caller(socket) => socket.poll_send(cx, transmit),
        }
    }

    /// Sends the packets if the socket accepts them immediately; after `Pending` the task is not
    /// woken. Packet sockets are not supported, because only the driver's task may call them.
    ///
    /// # Errors
    /// The error of the system; the packets are lost then.
    pub(crate) fn try_send(&self, transmit: &Transmit<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::System(socket) => match socket.try_send(transmit) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
                result => Poll::Ready(result),
            },
            Self::Caller(_) => Poll::Pending,
        }
    }

    /// Enables or disables IP fragmentation of packets that are sent from now on.
    pub(crate) fn allow_fragmentation(&self, allowed: bool) {
        if let Self::System(socket) = self {
            socket.allow_fragmentation(allowed);
        }
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
        match self {
            Self::System(socket) => socket.poll_receive(cx, buffers, meta),
            Self::Caller(socket) => socket.poll_receive(cx, buffers, meta),
        }
    }

    /// Passes at most `most` ICMP messages about datagrams of this socket to `each`. Returns true
    /// if there were any.
    pub(crate) fn take_reported(&self, most: usize, mut each: impl FnMut(&Icmp<'_>)) -> bool {
        let mut came = false;
        #[cfg(target_os = "linux")]
        if let Self::System(socket) = self {
            for _ in 0..most {
                let Some(reported) = socket.next_reported() else {
                    break;
                };
                came = true;
                each(&reported.icmp());
            }
        }
        let _ = (most, &mut each);
        came
    }

    /// Range of the SCTP packet in the received data; `None` if it contains no whole packet.
    pub(crate) fn packet_range(&self, received: &[u8]) -> Option<std::ops::Range<usize>> {
        match self {
            Self::System(socket) => socket.packet_range(received),
            Self::Caller(_) => Some(0..received.len()),
        }
    }

    /// The local destination address of a received packet.
    pub(crate) fn local_of(&self, meta: &RecvMeta) -> IpAddr {
        match meta.dst_ip {
            Some(address) => address.to_canonical(),
            None => self.local().ip(),
        }
    }
}

/// Opens and binds the sockets that `config` specifies.
fn bind_all(config: &Config) -> Result<Vec<Bound>, BindError> {
    let any_port = config.carrier != Carrier::Ip && config.carrier.port() == 0;
    let attempts = if any_port { PORT_ATTEMPTS } else { 1 };
    let mut result = try_bind_all(config, config.carrier.port(), false);
    for _ in 1..attempts {
        // Tries again, because the port that the system selected for the first address may be in
        // use at another address.
        match &result {
            Err(BindError::Socket { source, .. }) if source.kind() == io::ErrorKind::AddrInUse => {
                result = try_bind_all(config, config.carrier.port(), false);
            }
            _ => break,
        }
    }
    result
}

fn try_bind_all(config: &Config, mut port: u16, shares: bool) -> Result<Vec<Bound>, BindError> {
    let mut all = Vec::new();
    if config.addresses.is_empty() {
        let v4 = Bound::open(Ipv4Addr::UNSPECIFIED.into(), port, config, shares)?;
        port = v4.port();
        all.push(v4);
        // A host may have no IPv6, so IPv4 alone suffices if the IPv6 socket cannot be opened.
        match Bound::open(Ipv6Addr::UNSPECIFIED.into(), port, config, shares) {
            Ok(v6) => all.push(v6),
            Err(BindError::Socket { source, .. }) if source.kind() != io::ErrorKind::AddrInUse => {}
            Err(error) => return Err(error),
        }
    }
    for &address in &config.addresses {
        let socket = Bound::open(address, port, config, shares)?;
        port = socket.port();
        all.push(socket);
    }
    Ok(all)
}

/// Opens and binds the sockets that `config` specifies `count` times, each time at the same
/// addresses and UDP port. The first ones are bound without sharing, which fails if another process
/// uses the port.
pub(crate) fn bind_shared(config: &Config, count: u32) -> Result<Vec<Vec<Bound>>, BindError> {
    let first = bind_all(config)?;
    if count == 1 {
        return Ok(vec![first]);
    }
    let port = first.first().map_or(0, Bound::port);
    for socket in &first {
        socket.share()?;
    }
    let mut all = vec![first];
    for _ in 1..count {
        all.push(try_bind_all(config, port, true)?);
    }
    #[cfg(target_os = "linux")]
    for socket in &all[0] {
        reuseport::steer(socket.socket(), count);
    }
    Ok(all)
}

/// The address with the zone that link-local addresses need (RFC 4007 §6); other addresses
/// unchanged.
fn in_zone(address: SocketAddr, zone: Option<u32>) -> SocketAddr {
    match (address, zone) {
        (SocketAddr::V6(v6), Some(zone)) if v6.ip().is_unicast_link_local() => {
            SocketAddrV6::new(*v6.ip(), v6.port(), v6.flowinfo(), zone).into()
        }
        _ => address,
    }
}

/// All sockets of a driver.
#[derive(Debug)]
pub(crate) struct Sockets {
    all: Vec<Socket>,
    /// Sockets for ICMP over raw IP, one for each address family.
    icmp: Vec<IcmpSocket>,
    /// The interface index (zone) of link-local addresses.
    zone: Option<u32>,
}

impl Sockets {
    /// Opens and binds the sockets that `config` specifies.
    pub(crate) fn open(config: &Config, runtime: &dyn Runtime) -> Result<Self, BindError> {
        Self::watched(bind_all(config)?, config, runtime)
    }

    /// Registers sockets that were bound by `config` with a runtime.
    pub(crate) fn watched(
        bound: Vec<Bound>,
        config: &Config,
        runtime: &dyn Runtime,
    ) -> Result<Self, BindError> {
        let watched = bound.into_iter().map(|it| it.watched(config, runtime));
        let all: Vec<Socket> = watched.collect::<Result<_, _>>()?;
        let mut icmp = Vec::new();
        for v6 in [false, true] {
            let used = all.iter().any(|socket| socket.local().is_ipv6() == v6);
            if used && config.carrier == Carrier::Ip {
                // Errors are ignored, because ICMP messages only speed up the detection of failures
                // and the system may not permit the socket.
                icmp.extend(IcmpSocket::open(v6, runtime).ok());
            }
        }
        Ok(Self {
            all,
            icmp,
            zone: config.zone,
        })
    }

    /// Takes over UDP sockets that the application has bound.
    ///
    /// # Errors
    /// The error of the system.
    pub(crate) fn adopt(
        sockets: Vec<std::net::UdpSocket>,
        config: &Config,
        runtime: &dyn Runtime,
    ) -> Result<Self, BindError> {
        let mut all = Vec::with_capacity(sockets.len());
        for socket in sockets {
            let socket = RawSocket::from(socket);
            let bound = socket.local_addr().ok().and_then(|it| it.as_socket());
            let bound = bound.unwrap_or((Ipv4Addr::UNSPECIFIED, 0).into());
            let (address, port) = (bound.ip(), bound.port());
            let adopted = OsSocket::adopt(socket, address, config, runtime);
            let adopted = adopted.map_err(|source| BindError::Socket {
                address,
                port,
                source,
            });
            all.push(Socket::System(Box::new(adopted?)));
        }
        Ok(Self::of(all, config))
    }

    /// Takes over packet sockets of the application.
    pub(crate) fn from_caller(sockets: Vec<Box<dyn PacketSocket>>, config: &Config) -> Self {
        let given = sockets
            .into_iter()
            .map(CallerSocket::new)
            .map(Socket::Caller);
        Self::of(given.collect(), config)
    }

    fn of(all: Vec<Socket>, config: &Config) -> Self {
        Self {
            all,
            icmp: Vec::new(),
            zone: config.zone,
        }
    }

    /// Sockets for ICMP messages about packets of this host.
    pub(crate) fn icmp(&self) -> impl Iterator<Item = &IcmpSocket> {
        self.icmp.iter()
    }

    /// Returns true if the sockets are sockets of the system, on which any task may send.
    pub(crate) fn are_os_sockets(&self) -> bool {
        !matches!(self.all.first(), Some(Socket::Caller(_)))
    }

    /// Adds a socket for an address that was added later.
    pub(crate) fn add(&mut self, socket: Socket) {
        self.all.push(socket);
    }

    /// Closes all sockets.
    pub(crate) fn close(&mut self) {
        self.all.clear();
        self.icmp.clear();
    }

    /// The addresses to which the sockets are bound.
    pub(crate) fn locals(&self) -> Vec<SocketAddr> {
        self.all.iter().map(Socket::local).collect()
    }

    /// The sockets, in the order of the addresses.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Socket> {
        self.all.iter()
    }

    /// The socket with this index.
    pub(crate) fn get(&self, index: usize) -> &Socket {
        &self.all[index]
    }

    /// The destination address for system calls: `remote`, with the zone if it is link-local.
    pub(crate) fn destination(&self, remote: SocketAddr) -> SocketAddr {
        in_zone(remote, self.zone)
    }

    /// Index of the socket for packets from `local` to `remote`, and the source address to request
    /// from the system, if it is not the socket's.
    pub(crate) fn route(&self, local: IpAddr, remote: IpAddr) -> Option<(usize, Option<IpAddr>)> {
        let of_family = |socket: &Socket| socket.local().is_ipv4() == remote.is_ipv4();
        if local.is_unspecified() {
            return self.all.iter().position(of_family).map(|at| (at, None));
        }
        let bound = self
            .all
            .iter()
            .position(|socket| socket.local().ip() == local);
        if let Some(at) = bound {
            return Some((at, None));
        }
        self.all
            .iter()
            .position(|socket| of_family(socket) && socket.local().ip().is_unspecified())
            .map(|at| (at, Some(local)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_link_local_addresses_have_a_zone() {
        let zoned = |text: &str| in_zone(text.parse().expect("an address"), Some(7)).to_string();
        assert_eq!(zoned("[fe80::1]:9899"), "[fe80::1%7]:9899");
        assert_eq!(zoned("[2001:db8::1]:9899"), "[2001:db8::1]:9899");
        assert_eq!(zoned("192.0.2.1:9899"), "192.0.2.1:9899");
    }
}
