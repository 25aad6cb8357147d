//! Interleaving: processing of I-DATA and I-FORWARD-TSN ([`crate::interleaving`]).

use anabranch_transport::{Nanos, Path};
use anabranch_wire::extension::{Extension, IData, IForwardTsn};

use super::Association;
use crate::discard::{DiscardCounts, DiscardReason};
use crate::path::PathId;
use crate::profile::Counts;
use crate::reconfig::UserChunk;
use crate::state::{State, Tcb};

impl Association {
    /// Processes I-DATA or I-FORWARD-TSN if interleaving was negotiated.
    pub(super) fn on_interleaved(
        &mut self,
        now: Nanos,
        path: Path,
        chunk: Extension,
        discards: &mut DiscardCounts,
    ) {
        let from = self.paths.find(path.remote).unwrap_or(self.sack_path);
        let from = self.paths.verified(from);
        match chunk {
            Extension::IData(data) => self.on_i_data(now, path, from, data, discards),
            Extension::IForwardTsn(forward) => self.on_i_forward_tsn(now, from, &forward, discards),
            _ => discards.count(DiscardReason::WrongState),
        }
    }

    /// Processes I-DATA (RFC 8260 §2.2.3).
    pub(super) fn on_i_data(
        &mut self,
        now: Nanos,
        path: Path,
        from: PathId,
        data: IData,
        discards: &mut DiscardCounts,
    ) {
        if !self.state.receives_data() {
            return discards.count(DiscardReason::WrongState);
        }
        let (tsn, stream_id) = (data.tsn, data.stream_id);
        if self.holds_data((tsn, stream_id), || UserChunk::IData(data.clone())) {
            return discards.count(DiscardReason::Data);
        }
        self.sack_path = from;
        self.data_taken = true;
        self.meter_data(path, Counts::PaddedChunk.bytes(data.user_data.len()));
        let (State::Active(Tcb { peer, .. }), Some(rx)) = (&self.state, &mut self.rx) else {
            return;
        };
        rx.note_events(self.events.count());
        let outcome = rx.handle_i_data(now, data, &mut self.trace);
        let number = tsn.distance_from(peer.initial_tsn);
        self.note_data(now, from, (tsn, stream_id, number), outcome, discards);
    }

    /// Processes I-FORWARD-TSN (RFC 8260 §2.3.1).
    fn on_i_forward_tsn(
        &mut self,
        now: Nanos,
        from: PathId,
        forward: &IForwardTsn,
        discards: &mut DiscardCounts,
    ) {
        if !self.state.receives_data() || !self.tx.is_interleaving() || self.is_unsure_of_numbers()
        {
            return discards.count(DiscardReason::WrongState);
        }
        let Some(rx) = &mut self.rx else {
            return;
        };
        rx.note_events(self.events.count());
        self.sack_path = from;
        self.data_taken = true;
        let forwarded = rx.handle_i_forward_tsn(now, forward, &mut self.trace);
        self.note_forwarded(forwarded, discards);
    }
}
