//! Streams that are reset and added (RFC 6525), if both ends have the setting `reconfiguration`.

use anabranch_sctp::{ReconfigError, StreamDirection};

use super::Association;

/// A change of an association's streams, for [`Association::reconfigure`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reconfiguration {
    /// Resets streams (SCTP_RESET_STREAMS, RFC 6458 §8.3.1). Outgoing: what was given for them is
    /// delivered first, and what is given from now on waits until it is settled. Incoming: the peer
    /// is asked to reset them. [`Event::StreamsReset`](crate::Event::StreamsReset)
    /// reports the outcome.
    ResetStreams {
        /// Those that this side sends on, or those of the peer.
        direction: StreamDirection,
        /// Which of them; empty: all.
        streams: Vec<u16>,
    },
    /// Resets all sequence numbers of both sides, of streams and TSNs (SCTP_RESET_ASSOC). What was
    /// given before is delivered first.
    /// [`Event::AssociationReset`](crate::Event::AssociationReset) reports the
    /// outcome.
    ResetAssociation,
    /// Adds streams (SCTP_ADD_STREAMS).
    /// [`Event::StreamsAdded`](crate::Event::StreamsAdded) reports the outcome,
    /// for each direction.
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
}

impl Association {
    /// Requests a change of the streams. One request at a time is under way; an event reports its
    /// outcome.
    ///
    /// # Errors
    /// See [`ReconfigError`]; nothing is requested then.
    pub fn reconfigure(&self, change: &Reconfiguration) -> Result<(), ReconfigError> {
        let now = self.shared.now();
        let mut state = self.shared.lock();
        let association = state.association(self.id);
        let association = association.ok_or(ReconfigError::NotEstablished)?;
        match change {
            Reconfiguration::ResetStreams { direction, streams } => match direction {
                StreamDirection::Outgoing => association.reset_streams(streams),
                StreamDirection::Incoming => association.reset_incoming(streams),
            },
            Reconfiguration::ResetAssociation => association.reset_association(now),
            Reconfiguration::AddStreams { outbound, inbound } => {
                association.add_streams(*outbound, *inbound)
            }
        }?;
        state.wake_driver();
        Ok(())
    }
}
