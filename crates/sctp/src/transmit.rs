//! Packet to send, of an association or a stateless reply of the endpoint.

use anabranch_transport::Transmit;

use crate::association_id::AssociationId;

/// Packet to send and its encapsulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UdpTransmit {
    /// Range appended to the buffer, and the source and destination addresses.
    pub transmit: Transmit,
    /// Peer's UDP port for encapsulated packets (RFC 6951 §5.5); 0 for SCTP directly over IP.
    pub udp_port: u16,
    /// The checksum field is 0, and the caller must fill it in
    /// ([`checksum::fill`](anabranch_wire::checksum::fill)). Only with
    /// [`TransmitOptions::defer_checksums`].
    pub unsummed: bool,
}

/// Selection of the packets that
/// [`Endpoint::poll_transmit_batch`](crate::Endpoint::poll_transmit_batch) returns. The default is
/// all packets, ready to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransmitOptions {
    /// Only packets of this association, for a caller that has just queued a message; `None`: all.
    pub association: Option<AssociationId>,
    /// Packets may lack their checksum ([`UdpTransmit::unsummed`]). A caller that gathers many
    /// packets computes it cheaper at the end, because reading bytes that were just written stalls
    /// the processor.
    pub defer_checksums: bool,
}

impl TransmitOptions {
    /// Selects the packets of this association only.
    #[must_use]
    pub const fn with_association(mut self, association: AssociationId) -> Self {
        self.association = Some(association);
        self
    }

    /// Sets whether packets may lack their checksum.
    #[must_use]
    pub const fn with_deferred_checksums(mut self, defer: bool) -> Self {
        self.defer_checksums = defer;
        self
    }
}
