//! What a user may ask of an association's streams.

use super::StreamDirection;

/// A change of an association's streams, for [`Association::reconfigure`](crate::Association::reconfigure).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reconfiguration {
    /// Resets streams (SCTP_RESET_STREAMS, RFC 6525 §6.3.2). Outgoing: what was given for them before is sent and acknowledged first; what is
    /// given from now on, or without a stream, waits until it is settled. Incoming: the peer is asked to reset them. Then they begin with
    /// number 0. [`Event::StreamsReset`](crate::Event::StreamsReset) reports the outcome, once for each stream or for several together.
    ResetStreams {
        /// Those that this side sends on, or those of the peer.
        direction: StreamDirection,
        /// Which of them; empty: all.
        streams: Vec<u16>,
    },
    /// Resets all sequence numbers of both sides, of streams and TSNs (SCTP_RESET_ASSOC, RFC 6525 §6.3.3). What was given before is sent and
    /// acknowledged first; what is given from now on waits. [`Event::AssociationReset`](crate::Event::AssociationReset) reports the outcome.
    ResetAssociation,
    /// Adds streams (SCTP_ADD_STREAMS, RFC 6525 §6.3.4). [`Event::StreamsAdded`](crate::Event::StreamsAdded) reports the outcome, for each
    /// direction.
    AddStreams {
        /// How many more this side may send on.
        outbound: u16,
        /// How many more the peer may send on.
        inbound: u16,
    },
}

impl Reconfiguration {
    /// Resets these streams that this side sends on; empty: all.
    pub fn reset_outgoing(streams: impl Into<Vec<u16>>) -> Self {
        Self::ResetStreams {
            direction: StreamDirection::Outgoing,
            streams: streams.into(),
        }
    }

    /// Asks the peer to reset these streams that it sends on; empty: all.
    pub fn reset_incoming(streams: impl Into<Vec<u16>>) -> Self {
        Self::ResetStreams {
            direction: StreamDirection::Incoming,
            streams: streams.into(),
        }
    }

    /// Adds so many streams to those of this side, and so many to the peer's.
    pub const fn add_streams(outbound: u16, inbound: u16) -> Self {
        Self::AddStreams { outbound, inbound }
    }
}
