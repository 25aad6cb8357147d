//! Receiver processing of I-DATA and I-FORWARD-TSN (RFC 8260), which differ from DATA by 32-bit
//! message numbers and by fragments that are not ordered by TSN.

mod abandoned;

use anabranch_transport::{Nanos, Trace};
use anabranch_wire::extension::{IData, IForwardTsn};

use super::chunk::ChunkView;
use super::forward_tsn::Skipped;
use super::tsn_tracker::Neighbours;
use super::{Abandoned, DataOutcome, ForwardTsnOutcome, Receiver};
pub(super) use abandoned::AbandonedMessages;

/// Why a chunk of I-DATA is discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Misfit {
    /// The chunk was in flight when its message was abandoned.
    Late,
    /// The chunk contradicts data that was received before.
    Contradiction,
}

impl Receiver {
    /// Records whether the peer interleaves messages.
    pub(crate) fn expect_interleaved(&mut self, spoken: bool) {
        if spoken {
            self.assembly.interleaves(self.streams);
        }
        self.reassembly.expect_interleaved(spoken);
        self.order.expect_interleaved(spoken);
    }

    /// Processes one I-DATA chunk.
    pub(crate) fn handle_i_data(
        &mut self,
        now: Nanos,
        data: IData,
        trace: &mut Trace,
    ) -> DataOutcome {
        let chunk = ChunkView::of_i_data(&data);
        self.take_data(now, &chunk, || data.user_data.clone(), trace)
    }

    /// Checks a new I-DATA chunk; returns whether buffered fragments are adjacent to it. In case of
    /// an error the chunk is discarded.
    pub(super) fn judge_interleaved(
        &mut self,
        chunk: &ChunkView<'_>,
    ) -> Result<Neighbours, Misfit> {
        let (stream, number) = (chunk.stream, chunk.number);
        let is_past = !chunk.unordered && !number.ge(self.order.next(stream));
        let was_abandoned =
            chunk.unordered && (self.abandoned.as_mut()).is_some_and(|it| it.has(stream, number.0));
        if was_abandoned || (is_past && self.reassembly.gives_up()) {
            return Err(Misfit::Late);
        }
        if is_past {
            return Err(Misfit::Contradiction);
        }
        // Only the first fragment has number 0 (RFC 8260 §2.1), and no message has 2^31 fragments.
        let fsn = chunk.place.at.0;
        let contradicts = (fsn == 0 && !chunk.beginning)
            || fsn > u32::MAX / 2
            || (!chunk.unordered && self.order.waits(stream, number));
        let beside = self.reassembly.beside(chunk).filter(|_| !contradicts);
        beside.ok_or(Misfit::Contradiction)
    }

    /// Like [`Self::handle_forward_tsn`], for an I-FORWARD-TSN (RFC 8260 §2.3.1).
    pub(crate) fn handle_i_forward_tsn(
        &mut self,
        now: Nanos,
        forward: &IForwardTsn,
        trace: &mut Trace,
    ) -> ForwardTsnOutcome {
        let skipped = forward.skipped().map(|it| Skipped {
            stream: it.stream_id,
            unordered: it.unordered,
            number: it.mid,
        });
        self.skip(now, forward.new_cumulative_tsn, skipped, trace)
    }

    /// Drops the fragments of interleaved messages that will not be completed. Returns those
    /// messages that were partially delivered, or `None` if there were no fragments.
    pub(super) fn drop_skipped(
        &mut self,
        now: Nanos,
        skipped: &Skipped,
        trace: &mut Trace,
    ) -> Option<Vec<Abandoned>> {
        let (stream, unordered, to) = (skipped.stream, skipped.unordered, skipped.number.0);
        if !self.reassembly.is_interleaved() {
            return None;
        }
        let from = if unordered {
            self.abandoned.get_or_insert_default().note(stream, to);
            to.wrapping_sub(u32::MAX / 2)
        } else if skipped.number.ge(self.order.next(stream)) {
            self.order.next(stream).0
        } else {
            return None;
        };
        Some(self.drop_pieces(now, trace, |it| it.drop_span((stream, unordered), from, to)))
    }
}

#[cfg(test)]
mod tests;
