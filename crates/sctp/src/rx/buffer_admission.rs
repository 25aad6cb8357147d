//! Receive buffer admission: which chunks are accepted, dropped to make space, or copied out of
//! their packets.

use anabranch_transport::{Nanos, Trace};
use anabranch_wire::Tsn;
use bytes::Bytes;

use super::chunk::ChunkView;
use super::ready_queue::Deliverable;
use super::{DataOutcome, Receiver};

impl Receiver {
    /// Whether the buffer has space for the chunk, or the chunk fills a gap. A chunk below the
    /// highest TSN may exceed the buffer, up to the memory limit, because only such a chunk can
    /// release the data that is buffered after the gap (RFC 9260 §6.2).
    #[inline]
    pub(super) fn has_room_for(&self, chunk: &ChunkView<'_>, bytes: u64) -> bool {
        let fills_hole = chunk.tsn.lt(self.tracker.highest());
        let length = chunk.user_data.len() as u64;
        // I-DATA that fills a gap may exceed the buffer under every profile, because no other data
        // is dropped for it.
        let into_hole = fills_hole && chunk.is_interleaved && self.window.has_memory_for(length, 1);
        into_hole || self.window.admits(bytes, length, fills_hole)
    }

    /// Makes space for a new chunk that does not fit, or rejects it.
    pub(super) fn admit(
        &mut self,
        now: Nanos,
        chunk: &ChunkView<'_>,
        bytes: u64,
        trace: &mut Trace,
    ) -> Result<(), DataOutcome> {
        if self.make_room(chunk, bytes) {
            return Ok(());
        }
        let is_next = chunk.tsn == self.tracker.cumulative().next();
        if (is_next || chunk.is_interleaved) && self.ready.is_empty() {
            if !self.relieve(now, trace) && self.can_pass_through(chunk) {
                return Ok(());
            }
            if is_next && self.ready.is_empty() {
                return Err(DataOutcome::Exhausted);
            }
            if self.has_room_for(chunk, bytes) {
                return Ok(());
            }
        }
        self.sack.at_once();
        Err(DataOutcome::DroppedFull)
    }

    /// Like [`Self::admit`], for profiles that silently drop every chunk that does not fit
    /// (ns-2.35). As an exception, the next chunk in order makes space when it is retransmitted
    /// after a drop. ns-2's sender never sends more than fits, and does not need the exception. A
    /// sender that counts only user data may send more; without the exception, both ends would then
    /// wait forever.
    pub(super) fn admit_silently(
        &mut self,
        now: Nanos,
        chunk: &ChunkView<'_>,
        bytes: u64,
        trace: &mut Trace,
    ) -> Result<(), DataOutcome> {
        let length = chunk.user_data.len() as u64;
        let fits = |it: &Self| it.window.admits(bytes, length, false);
        if fits(self) || (self.relieve(now, trace) && fits(self)) {
            return Ok(());
        }
        if chunk.tsn == self.tracker.cumulative().next()
            && self.refused.replace(chunk.tsn) == Some(chunk.tsn)
            && chunk.stream < self.streams
            && self.make_room(chunk, bytes)
        {
            return Ok(());
        }
        if self.tracker.has_gaps() {
            self.sack.at_once(); // ns-2.35 answers every packet while there is a gap
        }
        Err(DataOutcome::DroppedFull)
    }

    /// Drops buffered chunks with the highest TSNs until `chunk` fits, but none with a lower TSN
    /// than `chunk` (RFC 9260 §6.2). The next SACK reneges on the dropped chunks, and the peer
    /// retransmits them. Into an empty buffer the next chunk in order is accepted even if it is
    /// larger than the buffer, because it could otherwise never be received. I-DATA that was
    /// acknowledged is never dropped: partial delivery starts instead.
    fn make_room(&mut self, chunk: &ChunkView<'_>, bytes: u64) -> bool {
        let next = chunk.tsn == self.tracker.cumulative().next();
        if !next && !chunk.tsn.lt(self.tracker.highest()) {
            return false;
        }
        while !self.has_room_for(chunk, bytes) {
            if next && self.window.is_empty() {
                return true;
            }
            if !self.drop_highest_above(chunk.tsn) {
                return false;
            }
        }
        true
    }

    /// Drops the undelivered data with the highest TSN, if that is above `tsn`. Returns `false` if
    /// there is none.
    fn drop_highest_above(&mut self, tsn: Tsn) -> bool {
        if self.reassembly.is_interleaved() {
            return false;
        }
        let above = |it: Option<Tsn>| it.filter(|it| it.gt(tsn));
        let message = above(self.order.highest());
        let fragment = above(self.reassembly.highest());
        match (message, fragment) {
            (None, None) => return false,
            (Some(message), None) => self.drop_message(message),
            (Some(message), Some(fragment)) if message.gt(fragment) => self.drop_message(message),
            (_, Some(fragment)) => self.drop_fragment(fragment),
        }
        self.sack.at_once();
        true
    }

    /// Drops the complete message that waits for its turn and ends with `last`, the highest TSN.
    fn drop_message(&mut self, last: Tsn) {
        let Some(message) = self.order.drop_highest() else {
            return;
        };
        // The fragments of the message have consecutive TSNs.
        let mut tsn = last;
        for part in message.payload.parts().iter().rev() {
            self.tracker.withdraw(tsn);
            tsn = tsn.prev();
            self.withdrew(message.stream, part.len());
        }
    }

    /// Drops the buffered fragment `tsn`, which is the highest TSN.
    fn drop_fragment(&mut self, tsn: Tsn) {
        let Some(fragment) = self.reassembly.drop_highest() else {
            return;
        };
        self.tracker.withdraw(tsn);
        self.withdrew(fragment.stream, fragment.payload.len());
        if let Some(head) = &fragment.head {
            self.long.forget(head);
        }
    }

    /// Counts a dropped chunk that was already reported to the peer, which will retransmit it.
    fn withdrew(&mut self, stream: u16, length: usize) {
        self.statistics.rare().withdrawn += 1;
        self.let_go(stream, length);
        self.window.refuse(self.profile.rwnd_counts.bytes(length));
    }

    /// Releases the buffer space of a chunk.
    pub(super) fn let_go(&mut self, stream: u16, length: usize) {
        let bytes = self.profile.rwnd_counts.bytes(length);
        self.window.free(bytes, length);
        self.held.free(stream, bytes);
    }

    /// Whether a chunk is readable at once although it does not fit, because it continues a message
    /// in partial delivery: I-DATA, or the next DATA in order. For DATA there must be no gap, so
    /// that all buffered data waits only for the end of that message.
    fn can_pass_through(&self, chunk: &ChunkView<'_>) -> bool {
        let goes_on = if chunk.is_interleaved {
            self.reassembly.continues_open(chunk.place)
        } else {
            let head = self.reassembly.at_cumulative(self.tracker.cumulative());
            head.is_some_and(|it| it.open) && !self.tracker.has_gaps()
        };
        // Only the memory limit applies, under every profile, because no other chunk can make space
        // for this one.
        goes_on && self.window.has_memory_for(chunk.user_data.len() as u64, 1)
    }

    /// Decides how to store user data. Readable data stays a slice of its packet, because it should
    /// be read soon. Other data is copied unless it nearly fills its packet. Returns the data, and
    /// whether the data keeps little more memory alive than its own bytes.
    #[inline(always)]
    pub(super) fn hold(
        &mut self,
        payload: &[u8],
        waits: bool,
        user_data: impl FnOnce() -> Bytes,
    ) -> (Bytes, bool) {
        let fills = self.nearly_fills(payload.len());
        if waits && !fills {
            return (Bytes::copy_from_slice(payload), true);
        }
        self.sliced += payload.len();
        (user_data(), fills)
    }

    /// Whether user data of this length fills at least seven eighths of the packet. If the packet
    /// length is unknown, 1,024 bytes are assumed.
    #[inline]
    pub(super) fn nearly_fills(&self, length: usize) -> bool {
        8 * length >= self.nearly_full()
    }

    /// Eight times the number of bytes that nearly fill the packet.
    #[inline]
    pub(super) fn nearly_full(&self) -> usize {
        7 * self.packet.max(1024)
    }

    /// Counts the memory that the current packet keeps alive, and copies buffered data out of its
    /// packets if this memory exceeds the limit.
    #[inline]
    pub(super) fn weigh(&mut self) {
        if self.sliced > 0 {
            self.window.wastes(self.packet.saturating_sub(self.sliced));
        }
        let spare = self.ready.capacity() - self.ready.len();
        if self
            .window
            .is_pressed(spare * size_of::<Deliverable>() + self.order.spare())
        {
            self.compact();
        }
    }

    /// Copies readable data out of its packets, and releases unused capacity.
    #[cold]
    pub(super) fn compact(&mut self) {
        for readable in self.ready.iter_mut().filter(|it| !it.compact) {
            readable.part.payload.compact();
            readable.compact = true;
        }
        let most = self.ready.len() + self.ready.len() / 4;
        self.ready.shrink_to(most);
        self.order.compact();
        self.window.wastes_nothing();
    }
}
