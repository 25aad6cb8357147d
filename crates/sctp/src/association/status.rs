//! What is asked of an association now and then, at once.

use bytes::Bytes;

use super::Association;
use crate::state::State;
use crate::tx::Sender;

/// The state of an association at an instant (SCTP_STATUS, RFC 6458 §8.2.1).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AssociationStatus {
    /// The peer's port.
    pub remote_port: u16,
    /// Streams this side may send on: those asked for, until the handshake has settled it.
    pub outbound_streams: u16,
    /// Streams the peer may send on: the most allowed, until the handshake has settled it.
    pub inbound_streams: u16,
    /// Streams that messages without a [stream](crate::SendOptions::stream) use now: 1 to those negotiated.
    pub streams_in_use: u16,
    /// What is believed to be left of the peer's receive window, bytes.
    pub peer_rwnd: u64,
    /// DATA chunks sent and not yet cumulatively acknowledged.
    pub outstanding_chunks: usize,
    /// Bytes of the largest message that is sent in one DATA chunk (sstat_fragmentation_point).
    pub fragmentation_point: usize,
    /// Packets received with [`Ecn::Ce`](anabranch_transport::Ecn::Ce). If both ends use ECN ([`Negotiated::ecn`](crate::Negotiated::ecn))
    /// the peer learns of them; else they change nothing.
    pub ce_received: u64,
    /// The layer above the peer, in its own numbers (RFC 5061 §4.2.6), if it has said so in the handshake.
    pub peer_adaptation_layer: Option<u32>,
    /// What the peer's user said when it aborted the association, if anything (User-Initiated Abort, RFC 9260 §3.3.10.12, §9.1).
    pub abort_reason: Option<Bytes>,
}

impl Association {
    /// Its state at this instant.
    pub fn status(&self) -> AssociationStatus {
        AssociationStatus {
            remote_port: self.remote_port,
            outbound_streams: self.outbound_streams,
            inbound_streams: self.inbound_streams,
            streams_in_use: self.tx.streams_in_use(),
            peer_rwnd: self.tx.peer_rwnd(),
            outstanding_chunks: self.tx.get().map_or(0, Sender::outstanding_chunks),
            fragmentation_point: self.tx.most_user_data(&self.paths),
            ce_received: self.marks_received,
            peer_adaptation_layer: self.peer_adaptation_layer(),
            abort_reason: match &self.state {
                State::Closed(closed) => closed.peers_reason.as_deref().map(Bytes::copy_from_slice),
                _ => None,
            },
        }
    }
}
