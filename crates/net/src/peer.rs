//! Whom to connect to.

use std::net::{IpAddr, SocketAddr};

/// Whom to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Peer {
    /// Its addresses; the first is the primary.
    pub addresses: Vec<IpAddr>,
    /// Its SCTP port.
    pub port: u16,
    /// Its UDP port where it differs from the carrier's `peer_port`.
    pub udp_port: Option<u16>,
}

impl Peer {
    /// A peer with these addresses and this SCTP port.
    pub fn new(addresses: impl Into<Vec<IpAddr>>, port: u16) -> Self {
        Self {
            addresses: addresses.into(),
            port,
            udp_port: None,
        }
    }

    /// The same with another UDP port.
    #[must_use]
    pub fn over_udp(self, port: u16) -> Self {
        Self {
            udp_port: Some(port),
            ..self
        }
    }
}

impl<A: Into<IpAddr>> From<(A, u16)> for Peer {
    /// An address and an SCTP port.
    fn from((address, port): (A, u16)) -> Self {
        Peer::new([address.into()], port)
    }
}

impl From<SocketAddr> for Peer {
    /// The port is the SCTP port.
    fn from(address: SocketAddr) -> Self {
        Peer::new([address.ip()], address.port())
    }
}
