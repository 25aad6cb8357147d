//! INIT ACKs that are refused by a stateless reply to their source (RFC 9260 §3.3.3).

use anabranch_wire::cause::{Cause, Causes};
use anabranch_wire::chunk::{Abort, Chunk, kind};
use anabranch_wire::packet::Frame;

use super::{Arrival, Endpoint};
use crate::association_state::AssociationState;
use crate::discard::DiscardReason;
use crate::event::{CloseReason, Violation};
use crate::handshake::MIN_A_RWND;

/// Whether an INIT ACK has an invalid Initiate Tag or a_rwnd, the first two fields of its value.
fn is_refused(ack: Frame<'_>) -> bool {
    let field = |at: usize| {
        let bytes = ack.value().get(at..)?.first_chunk();
        bytes.copied().map(u32::from_be_bytes)
    };
    field(0) == Some(0) || field(4).is_some_and(|window| window < MIN_A_RWND)
}

impl Endpoint {
    /// Handles an expected INIT ACK with an invalid field; returns whether `first` is such an INIT
    /// ACK. With Initiate Tag 0 the attempt fails. With an a_rwnd below 1,500 bytes the INIT ACK is
    /// ignored. In both cases the answer is an ABORT with the Initiate Tag, or, if the Initiate Tag
    /// is 0, with the packet's tag and the T bit.
    pub(super) fn refuses_init_ack(
        &mut self,
        slot: u32,
        arrival: Arrival,
        first: Frame<'_>,
    ) -> bool {
        if first.kind != kind::INIT_ACK || !is_refused(first) {
            return false;
        }
        let Some(association) = self.table.get_mut(slot) else {
            return false;
        };
        let Ok(Chunk::InitAck(ack)) = Chunk::decode(first.to_raw()) else {
            return false;
        };
        let tag_reflected = ack.initiate_tag == 0;
        let waiting = association.state() == AssociationState::CookieWait;
        if !waiting || (!tag_reflected && ack.a_rwnd >= MIN_A_RWND) {
            return false;
        }
        let tag = if tag_reflected {
            association.close(CloseReason::PeerViolation(Violation::BadInitAck));
            self.table.touch(slot);
            arrival.header.verification_tag
        } else {
            ack.initiate_tag
        };
        self.discards.count(DiscardReason::BadInit);
        let abort = Abort {
            tag_reflected,
            causes: Causes::of(&[Cause::InvalidMandatoryParameter]),
        };
        self.answer(arrival, tag, &[&abort]);
        true
    }
}
