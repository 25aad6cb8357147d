//! A packet as it is handed out: an association's, or an answer of the endpoint's.

use anabranch_transport::Transmit;

/// A packet to be sent, and how it is wrapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outgoing {
    /// What was appended to the buffer, and the addresses it travels between.
    pub transmit: Transmit,
    /// The peer's UDP port, if the packet goes inside UDP (RFC 6951 §5.5); 0: it goes right above IP.
    pub udp_port: u16,
    /// Its checksum field is 0, and whoever takes the packet has to fill it in
    /// ([`checksum::fill`](anabranch_wire::checksum::fill)). Only
    /// [`Endpoint::poll_all_unsummed`](crate::Endpoint::poll_all_unsummed) gives such packets.
    pub unsummed: bool,
}
