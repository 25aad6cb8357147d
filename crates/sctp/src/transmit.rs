//! Description of a packet to send, and selection of packets.

use anabranch_transport::Transmit;

use crate::association_id::AssociationId;

/// Packet to send, with its encapsulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UdpTransmit {
    /// Length of the packet, which was appended to the buffer, and its source and destination
    /// addresses.
    pub transmit: Transmit,
    /// Peer's UDP port for encapsulated packets (RFC 6951 §5.5); 0 for SCTP directly over IP.
    pub udp_port: u16,
    /// Whether the checksum field is 0 and must be filled in by the caller
    /// ([`checksum::fill`](anabranch_wire::checksum::fill)). Can be true only with
    /// [`TransmitOptions::defer_checksums`].
    pub unsummed: bool,
}

/// Options of [`Endpoint::poll_transmit_batch`](crate::Endpoint::poll_transmit_batch). By default
/// packets of all associations are returned, with their checksums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransmitOptions {
    /// Returns only packets of this association, for a caller that has just queued a message;
    /// `None`: packets of all associations.
    pub association: Option<AssociationId>,
    /// Whether packets may be returned without their checksum ([`UdpTransmit::unsummed`]). For a
    /// caller that collects many packets, it is faster to compute the checksums at the end, because
    /// reading bytes that were just written stalls the processor.
    pub defer_checksums: bool,
}

impl TransmitOptions {
    /// Selects the packets of this association only.
    #[must_use]
    pub const fn with_association(mut self, association: AssociationId) -> Self {
        self.association = Some(association);
        self
    }

    /// Sets whether packets may be returned without their checksum.
    #[must_use]
    pub const fn with_deferred_checksums(mut self, defer: bool) -> Self {
        self.defer_checksums = defer;
        self
    }
}
