//! The two sockets of an emulator: UDP, or raw for SCTP directly over IP.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::{Carrier, Config, StartError};

/// Index of each side.
pub(crate) const NEAR: usize = 0;
pub(crate) const FAR: usize = 1;
/// Interval at which an idle thread checks for a stop request.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Requested size of the receive buffer, bytes. Large enough for a burst of a whole window.
const SOCKET_BUFFER: usize = 4 << 20;
/// IP protocol number of SCTP.
const SCTP: i32 = 132;
/// Minimum length of an IPv4 header, bytes.
const MIN_HEADER: usize = 20;

/// Sockets of the near and the far side. Raw sockets are stored as UDP sockets, because the system
/// calls are the same.
#[derive(Debug)]
pub(crate) struct Sockets {
    sides: [UdpSocket; 2],
    carrier: Carrier,
}

impl Sockets {
    pub(crate) fn open(config: &Config) -> Result<Self, StartError> {
        let listen = config.listen.ip();
        let any: IpAddr = match config.to.ip() {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let from = config.from.unwrap_or(any);
        let own = listen != from && !listen.is_unspecified() && !from.is_unspecified();
        if config.carrier == Carrier::Ip && !own {
            return Err(StartError::Addresses { listen, from });
        }
        let far = SocketAddr::new(from, 0);
        Ok(Self {
            sides: [
                open(config.listen, config.carrier)?,
                open(far, config.carrier)?,
            ],
            carrier: config.carrier,
        })
    }

    pub(crate) fn far_port(&self, config: &Config) -> Result<u16, StartError> {
        self.port(FAR, config.to)
    }

    pub(crate) fn near_address(&self, config: &Config) -> Result<SocketAddr, StartError> {
        let port = self.port(NEAR, config.listen)?;
        Ok(SocketAddr::new(config.listen.ip(), port))
    }

    fn port(&self, side: usize, address: SocketAddr) -> Result<u16, StartError> {
        match (self.carrier, self.sides[side].local_addr()) {
            // For a raw socket the system returns the protocol number as the port.
            (Carrier::Ip, _) => Ok(0),
            (Carrier::Udp, Ok(bound)) => Ok(bound.port()),
            (Carrier::Udp, Err(source)) => Err(StartError::Socket { address, source }),
        }
    }

    pub(crate) fn send_to(&self, side: usize, packet: &[u8], to: SocketAddr) -> io::Result<usize> {
        self.sides[side].send_to(packet, to)
    }

    /// Receives the next packet of a side: its payload without headers that the system adds, and
    /// its source.
    pub(crate) fn receive<'a>(
        &self,
        side: usize,
        buffer: &'a mut [u8],
    ) -> io::Result<(&'a [u8], SocketAddr)> {
        let (len, mut from) = self.sides[side].recv_from(buffer)?;
        let received = &buffer[..len];
        if self.carrier == Carrier::Udp {
            return Ok((received, from));
        }
        from.set_port(0);
        let packet = match from {
            SocketAddr::V4(_) => payload_of_v4(received),
            SocketAddr::V6(_) => Some(received),
        };
        packet
            .map(|packet| (packet, from))
            .ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

fn open(address: SocketAddr, carrier: Carrier) -> Result<UdpSocket, StartError> {
    let domain = Domain::for_address(address);
    let (kind, protocol) = match carrier {
        Carrier::Udp => (Type::DGRAM, Protocol::UDP),
        Carrier::Ip => (Type::RAW, Protocol::from(SCTP)),
    };
    let bound = Socket::new(domain, kind, Some(protocol)).and_then(|socket| {
        socket.bind(&address.into())?;
        socket.set_read_timeout(Some(POLL_INTERVAL))?;
        Ok(UdpSocket::from(socket))
    });
    let socket = bound.map_err(|source| match carrier {
        Carrier::Ip if source.kind() == io::ErrorKind::PermissionDenied => {
            StartError::RawNotAllowed(source)
        }
        _ => StartError::Socket { address, source },
    })?;
    // An error is ignored: if the system does not grant this size, the buffer is smaller.
    let _ = SockRef::from(&socket).set_recv_buffer_size(SOCKET_BUFFER);
    Ok(socket)
}

/// The payload after the IPv4 header that a raw socket returns; `None` if the header does not match
/// the packet.
fn payload_of_v4(packet: &[u8]) -> Option<&[u8]> {
    let header = usize::from(packet.first()? & 0x0f) * 4;
    let total = usize::from(u16::from_be_bytes([*packet.get(2)?, *packet.get(3)?]));
    (header >= MIN_HEADER).then(|| packet.get(header..total))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raw_ipv4_packet_is_freed_of_its_header() {
        let mut packet = vec![0; 60];
        packet[0] = 0x45;
        packet[3] = 52;
        assert_eq!(payload_of_v4(&packet).map(<[u8]>::len), Some(32));
        packet[0] = 0x46;
        assert_eq!(payload_of_v4(&packet).map(<[u8]>::len), Some(28));
        for (place, wrong) in [(0, 0x44), (3, 61), (3, 10)] {
            let mut packet = packet.clone();
            packet[place] = wrong;
            assert_eq!(payload_of_v4(&packet), None);
        }
        assert_eq!(payload_of_v4(&[0x45]), None);
    }
}
