//! Processing of received DATA.

use anabranch_transport::{Nanos, Path, Probe};
use anabranch_wire::cause::{Cause, Causes};
use anabranch_wire::chunk::Data;
use anabranch_wire::encode::Encode;
use anabranch_wire::packet::{Chunks, Frame};
use anabranch_wire::serial::Tsn;
use bytes::BytesMut;

use super::{Association, Reply};
use crate::discard::{DiscardCounts, DiscardReason};
use crate::event::{CloseReason, Violation};
use crate::path::PathId;
use crate::profile::Counts;
use crate::reconfig::UserChunk;
use crate::rx::DataOutcome;
use crate::state::State;

impl Association {
    /// Processes a DATA chunk that the fast path does not handle. `from` caches the path on which
    /// DATA of this packet is acknowledged. It stays `None` if an extension must check each DATA
    /// chunk.
    #[inline(never)] // keeps its code out of the way of control packets
    pub(super) fn handle_data_chunk(
        &mut self,
        now: Nanos,
        path: Path,
        from: &mut Option<PathId>,
        frame: &Frame<'_>,
        discards: &mut DiscardCounts,
    ) {
        let from = match *from {
            Some(from) => from,
            None => {
                if !self.state.receives_data() {
                    return discard_data(frame, discards);
                }
                let to = self.acknowledging_path(path);
                if !self.cares_for_data() {
                    *from = Some(to);
                } else if !self.admit_data(path, frame, discards) {
                    return;
                }
                to
            }
        };
        let Some(rx) = &mut self.rx else {
            return;
        };
        rx.note_events(self.events.count());
        self.sack_path = from;
        match rx.handle_frame(now, frame, &mut self.trace) {
            Ok(DataOutcome::NewData) if self.marks.is_none() => {}
            Ok(outcome) => self.note_data_of(now, from, frame, outcome, discards),
            Err(_) => discards.count(DiscardReason::ChunkFields),
        }
    }

    /// Path on which DATA received over `path` is acknowledged; always a verified one.
    pub(super) fn acknowledging_path(&self, path: Path) -> PathId {
        let from = self.paths.find(path.remote).unwrap_or(self.sack_path);
        self.paths.verified(from)
    }

    /// Whether an extension is in use whose rules [`Self::admit_data`] checks.
    #[inline(always)]
    fn cares_for_data(&self) -> bool {
        self.rsctp.is_some() || self.tx.is_interleaving() || self.reconfiguration().is_some()
    }

    /// Checks whether the extensions in use accept this DATA now.
    #[cold]
    #[inline(never)]
    fn admit_data(&mut self, path: Path, frame: &Frame<'_>, discards: &mut DiscardCounts) -> bool {
        let Ok(data) = Data::read(frame) else {
            discards.count(DiscardReason::ChunkFields);
            return false;
        };
        let (tsn, stream_id, length) = (data.tsn, data.stream_id, data.user_data.len());
        if self.holds_data((tsn, stream_id), || UserChunk::Data(data)) {
            discards.count(DiscardReason::Data);
            return false;
        }
        if self.tx.is_interleaving() {
            self.refuse_protocol("DATA where I-DATA was agreed on");
            return false;
        }
        self.meter_data(path, Counts::PaddedChunk.bytes(length));
        true
    }

    /// Processes deferred DATA as if it had just arrived.
    pub(super) fn take_data(
        &mut self,
        now: Nanos,
        path: Path,
        data: &Data,
        discards: &mut DiscardCounts,
    ) {
        let mut chunk = BytesMut::new();
        data.encode(&mut chunk);
        let chunk = chunk.freeze();
        if let Some(Ok(frame)) = Chunks::bare(&chunk).next_frame() {
            self.handle_data_chunk(now, path, &mut None, &frame, discards);
        }
    }

    /// Handles outcomes of DATA on the slow path.
    #[cold]
    fn note_data_of(
        &mut self,
        now: Nanos,
        from: PathId,
        frame: &Frame<'_>,
        outcome: DataOutcome,
        discards: &mut DiscardCounts,
    ) {
        let (State::Active(known), Ok(data)) = (&self.state, Data::read(frame)) else {
            return;
        };
        let number = data.tsn.distance_from(known.peer.initial_tsn);
        let names = (data.tsn, data.stream_id, number);
        self.note_data(now, from, names, outcome, discards);
    }

    /// Handles the outcome of received user data: marks, duplicates, errors.
    pub(super) fn note_data(
        &mut self,
        now: Nanos,
        from: PathId,
        (tsn, stream_id, number): (Tsn, u16, u32),
        outcome: DataOutcome,
        discards: &mut DiscardCounts,
    ) {
        match outcome {
            DataOutcome::NewData => self.note_marked_data(tsn),
            DataOutcome::Aborting => {
                self.note_marked_data(tsn);
                self.tell_aborted();
            }
            DataOutcome::Duplicate => {
                discards.count(DiscardReason::Data);
                self.trace
                    .record(now, Probe::Duplicate, from.0.into(), number.into());
            }
            DataOutcome::DroppedFull | DataOutcome::BeyondWindow => {
                discards.count(DiscardReason::Data);
            }
            DataOutcome::InvalidStream => {
                discards.count(DiscardReason::Data);
                let causes = Causes::of(&[Cause::InvalidStreamIdentifier { stream_id }]);
                self.reply(Reply::Error { to: from, causes }, discards);
            }
            DataOutcome::NoUserData => {
                self.refuse(Cause::NoUserData { tsn }, Violation::NoUserData(tsn));
            }
            DataOutcome::Exhausted => {
                discards.count(DiscardReason::Data);
                self.abort_with(Cause::OutOfResource, CloseReason::ReceiveBufferExhausted);
            }
            DataOutcome::ProtocolViolation => self.refuse_protocol("contradictory fragments"),
        }
    }
}

/// Counts a DATA chunk received in a state that accepts none.
#[cold]
fn discard_data(frame: &Frame<'_>, discards: &mut DiscardCounts) {
    discards.count(match Data::read(frame) {
        Ok(_) => DiscardReason::WrongState,
        Err(_) => DiscardReason::ChunkFields,
    });
}
