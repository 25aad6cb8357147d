//! Status snapshot of an association.

use bytes::Bytes;

use super::Association;
use crate::event::Event;
use crate::state::State;
use crate::tx::Sender;

/// Status of an association at one point in time (SCTP_STATUS, RFC 6458 §8.2.1).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AssociationStatus {
    /// Port of the peer.
    pub remote_port: u16,
    /// Number of outbound streams; the requested number until the handshake is complete.
    pub outbound_streams: u16,
    /// Number of inbound streams; the maximum allowed until the handshake is complete.
    pub inbound_streams: u16,
    /// Number of streams currently used for messages without a
    /// [stream](crate::SendOptions::stream): 1 to the number of negotiated streams.
    pub streams_in_use: u16,
    /// Estimated free space in the peer's receive window, in bytes.
    pub peer_rwnd: u64,
    /// Number of DATA chunks sent and not yet cumulatively acknowledged.
    pub outstanding_chunks: usize,
    /// Size in bytes of the largest message that fits into one DATA chunk
    /// (sstat_fragmentation_point).
    pub fragmentation_point: usize,
    /// Number of packets received with [`Ecn::Ce`](anabranch_transport::Ecn::Ce). If both ends use
    /// ECN ([`Negotiated::ecn`](crate::Negotiated::ecn)), the marks are reported to the peer;
    /// otherwise they have no effect.
    pub ce_received: u64,
    /// Adaptation layer indication of the peer (RFC 5061 §4.2.6), if it sent one in the handshake.
    pub peer_adaptation_layer: Option<u32>,
    /// Text in the peer's ABORT, if any: the reason of its user (User-Initiated Abort, RFC 9260
    /// §3.3.10.12, §9.1), or the violation that its stack found (Protocol Violation, §3.3.10.13).
    /// [`CloseReason::AbortedByPeer`](crate::CloseReason::AbortedByPeer) contains the cause code.
    pub abort_reason: Option<Bytes>,
}

impl Association {
    /// Current status of the association.
    pub fn status(&self) -> AssociationStatus {
        AssociationStatus {
            remote_port: self.remote_port,
            outbound_streams: self.outbound_streams,
            inbound_streams: self.inbound_streams,
            streams_in_use: self.tx.streams_in_use(),
            peer_rwnd: self.tx.peer_rwnd(),
            outstanding_chunks: self.tx.get().map_or(0, Sender::outstanding_chunks),
            fragmentation_point: self.tx.most_user_data(&self.paths),
            ce_received: self.control.told().marks_received,
            peer_adaptation_layer: self.peer_adaptation_layer(),
            abort_reason: match &self.state {
                State::Closed(closed) => closed.peers_reason.as_deref().map(Bytes::copy_from_slice),
                _ => None,
            },
        }
    }

    /// Adaptation layer indication that the peer sent in the handshake (RFC 5061 §4.2.6), if any.
    fn peer_adaptation_layer(&self) -> Option<u32> {
        match &self.state {
            State::Active(known) => known.peer.adaptation,
            _ => None,
        }
    }

    /// Reports the peer's adaptation layer indication to the user.
    pub(super) fn tell_adaptation(&mut self) {
        if let Some(indication) = self.peer_adaptation_layer() {
            self.events
                .push_back(Event::AdaptationIndication { indication });
        }
    }
}
