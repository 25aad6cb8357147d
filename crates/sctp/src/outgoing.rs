//! A packet as it is handed out: an association's, or an answer of the endpoint's.

use anabranch_transport::Transmit;

use crate::association_id::AssociationId;

/// A packet to be sent, and how it is wrapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outgoing {
    /// What was appended to the buffer, and the addresses it travels between.
    pub transmit: Transmit,
    /// The peer's UDP port, if the packet goes inside UDP (RFC 6951 §5.5); 0: it goes right above IP.
    pub udp_port: u16,
    /// Its checksum field is 0, and whoever takes the packet has to fill it in
    /// ([`checksum::fill`](anabranch_wire::checksum::fill)). Only with [`TransmitOptions::defer_checksums`] there are such packets.
    pub unsummed: bool,
}

/// Which packets [`Endpoint::poll_transmit_batch`](crate::Endpoint::poll_transmit_batch) gives, and how: by default all, ready to be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransmitOptions {
    /// Those of one association alone, for a caller that has just given it a message; `None`: all.
    pub association: Option<AssociationId>,
    /// Packets may lack their checksum ([`Outgoing::unsummed`]). A caller that gathers many packets before they are sent computes it for
    /// less at the end, because a processor has to wait for bytes that it has only just written.
    pub defer_checksums: bool,
}

impl TransmitOptions {
    /// Those of this association alone.
    #[must_use]
    pub const fn with_association(mut self, association: AssociationId) -> Self {
        self.association = Some(association);
        self
    }

    /// Packets may lack their checksum, or not.
    #[must_use]
    pub const fn with_deferred_checksums(mut self, defer: bool) -> Self {
        self.defer_checksums = defer;
        self
    }
}
