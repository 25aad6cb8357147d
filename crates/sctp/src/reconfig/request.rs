//! Stream reconfiguration requests of the user.

use super::StreamDirection;

/// Change of an association's streams, requested by
/// [`Association::reconfigure`](crate::Association::reconfigure).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reconfiguration {
    /// Resets the stream sequence numbers of streams to 0 (SCTP_RESET_STREAMS, RFC 6525 §6.3.2).
    /// Outgoing: messages already queued for these streams are sent and acknowledged first. Later
    /// messages, and messages without a stream, wait until the reset is complete. Incoming: the
    /// peer is requested to reset the streams. [`Event::StreamsReset`](crate::Event::StreamsReset)
    /// reports the outcome, once for each stream or for several streams together.
    ResetStreams {
        /// Outgoing or incoming streams.
        direction: StreamDirection,
        /// Stream identifiers; empty: all streams.
        streams: Vec<u16>,
    },
    /// Resets TSNs and stream sequence numbers of both sides (SCTP_RESET_ASSOC, RFC 6525 §6.3.3).
    /// Messages queued before the request are sent and acknowledged first; later messages wait
    /// until the reset is complete. [`Event::AssociationReset`](crate::Event::AssociationReset)
    /// reports the outcome.
    ResetAssociation,
    /// Adds streams (SCTP_ADD_STREAMS, RFC 6525 §6.3.4).
    /// [`Event::StreamsAdded`](crate::Event::StreamsAdded) reports the outcome for each direction.
    AddStreams {
        /// Number of outgoing streams to add (0 to 65,535).
        outbound: u16,
        /// Number of incoming streams to add (0 to 65,535).
        inbound: u16,
    },
}

impl Reconfiguration {
    /// Resets these outgoing streams; an empty list means all streams.
    pub fn reset_outgoing(streams: impl Into<Vec<u16>>) -> Self {
        Self::ResetStreams {
            direction: StreamDirection::Outgoing,
            streams: streams.into(),
        }
    }

    /// Requests the peer to reset these incoming streams; an empty list means all streams.
    pub fn request_incoming_reset(streams: impl Into<Vec<u16>>) -> Self {
        Self::ResetStreams {
            direction: StreamDirection::Incoming,
            streams: streams.into(),
        }
    }

    /// Adds this number of outgoing and incoming streams.
    pub const fn add_streams(outbound: u16, inbound: u16) -> Self {
        Self::AddStreams { outbound, inbound }
    }
}
