//! Peers to connect to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A peer to connect to: its addresses or its name, and its SCTP port.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Peer {
    /// Addresses of the peer; the first is the primary. Empty if `name` is set.
    pub addresses: Vec<IpAddr>,
    /// Name of the peer, which is resolved for each attempt (RFC 8305).
    pub name: Option<String>,
    /// SCTP port of the peer.
    pub port: u16,
    /// UDP port of the peer, if it differs from the carrier's `peer_port`.
    pub udp_port: Option<u16>,
}

impl Peer {
    /// A peer with these addresses and this SCTP port.
    pub fn new(addresses: impl Into<Vec<IpAddr>>, port: u16) -> Self {
        Self {
            addresses: addresses.into(),
            name: None,
            port,
            udp_port: None,
        }
    }

    /// A peer with this SCTP port and this name, which may also be the text form of an address.
    pub fn named(name: impl Into<String>, port: u16) -> Self {
        let name = name.into();
        match name.parse::<IpAddr>() {
            Ok(address) => Self::new([address], port),
            Err(_) => Self {
                name: Some(name),
                ..Self::new([], port)
            },
        }
    }

    /// Returns a copy with another UDP port.
    #[must_use]
    pub fn over_udp(self, port: u16) -> Self {
        Self {
            udp_port: Some(port),
            ..self
        }
    }

    /// Returns a copy with one address instead of the name.
    pub(crate) fn at(&self, address: IpAddr) -> Self {
        Self {
            udp_port: self.udp_port,
            ..Self::new([address], self.port)
        }
    }
}

macro_rules! from_address {
    ($($address:ty),+) => {$(
        impl From<($address, u16)> for Peer {
            /// An IP address and an SCTP port.
            fn from((address, port): ($address, u16)) -> Self {
                Self::new([IpAddr::from(address)], port)
            }
        }
    )+};
}

from_address!(IpAddr, Ipv4Addr, Ipv6Addr, [u8; 4], [u8; 16], [u16; 8]);

impl From<SocketAddr> for Peer {
    /// An IP address with its SCTP port.
    fn from(address: SocketAddr) -> Self {
        Self::new([address.ip()], address.port())
    }
}

impl From<(&str, u16)> for Peer {
    /// A name, or an IP address as text, and an SCTP port.
    fn from((name, port): (&str, u16)) -> Self {
        Self::named(name, port)
    }
}

impl From<(String, u16)> for Peer {
    /// A name, or an IP address as text, and an SCTP port.
    fn from((name, port): (String, u16)) -> Self {
        Self::named(name, port)
    }
}
