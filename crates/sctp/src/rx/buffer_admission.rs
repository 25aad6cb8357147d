//! Receive buffer admission: which chunks are accepted, dropped to make space, or copied out of
//! their datagrams.

use anabranch_transport::{Nanos, Trace};
use anabranch_wire::Tsn;
use bytes::Bytes;

use super::chunk::UserChunk;
use super::ready_queue::Deliverable;
use super::reassembly::Head;
use super::{DataOutcome, Receiver};

impl Receiver {
    /// Whether the buffer has space, or the chunk fills a hole: one below the highest TSN is
    /// accepted beyond the buffer, up to the memory limit, because only it can release the data
    /// that waits behind it (RFC 9260 §6.2).
    #[inline]
    pub(super) fn has_room_for(&self, chunk: &UserChunk<'_>, bytes: u64) -> bool {
        let fills_hole = chunk.tsn.lt(self.tracker.highest());
        let length = chunk.user_data.len() as u64;
        // I-DATA does so under every profile, because nothing is dropped for it.
        let into_hole = fills_hole && chunk.is_interleaved && self.window.has_memory_for(length, 1);
        into_hole || self.window.admits(bytes, length, fills_hole)
    }

    /// Decides about a new chunk for which the buffer has no space.
    pub(super) fn admit(
        &mut self,
        now: Nanos,
        chunk: &UserChunk<'_>,
        bytes: u64,
        trace: &mut Trace,
    ) -> Result<(), DataOutcome> {
        if self.make_room(chunk, bytes) {
            return Ok(());
        }
        let is_next = chunk.tsn == self.tracker.cumulative().next();
        if (is_next || chunk.is_interleaved) && self.ready.is_empty() {
            if !self.relieve(now, trace) && self.can_pass_through(chunk, bytes) {
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
    /// (ns-2.35). Only the next chunk in order, when retransmitted after a drop, makes space.
    /// ns-2's sender never sends more than fits, but one that counts user data alone does, and both
    /// would wait forever.
    pub(super) fn admit_silently(
        &mut self,
        now: Nanos,
        chunk: &UserChunk<'_>,
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

    /// Drops the highest buffered TSNs, as long as they are higher than the chunk's, until it fits
    /// (RFC 9260 §6.2). The next SACK reneges on them, and the peer retransmits them. A chunk for
    /// an empty buffer always fits, because it may be larger than the buffer and would never arrive
    /// otherwise. I-DATA that was acknowledged is never dropped: partial delivery starts instead.
    fn make_room(&mut self, chunk: &UserChunk<'_>, bytes: u64) -> bool {
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

    /// Drops the waiting data with the highest TSN, if that is above `tsn`.
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

    /// Drops the waiting message that ends with `last`, the highest TSN.
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

    /// Drops the fragment `tsn`, the highest of all.
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

    /// A reported chunk was reneged: the peer retransmits it.
    fn withdrew(&mut self, stream: u16, length: usize) {
        self.statistics.seldom().withdrawn += 1;
        self.let_go(stream, length);
        self.window.refuse(self.profile.rwnd_counts.bytes(length));
    }

    /// Releases an accepted chunk.
    pub(super) fn let_go(&mut self, stream: u16, length: usize) {
        let bytes = self.profile.rwnd_counts.bytes(length);
        self.window.free(bytes, length);
        self.held.free(stream, bytes);
    }

    /// Whether the next chunk in order, which does not fit, continues a message in partial delivery
    /// and is thus readable at once. The buffered data may wait for the end of that message.
    fn can_pass_through(&self, chunk: &UserChunk<'_>, bytes: u64) -> bool {
        let at = self.tracker.cumulative();
        let goes_on = |head: Head| head.open && !self.tracker.has_gaps();
        let length = chunk.user_data.len() as u64;
        self.reassembly.at_cumulative(at).is_some_and(goes_on)
            && self.window.admits(bytes, length, true)
    }

    /// Readable data stays a slice of its packet, because it should be read soon. Waiting data does
    /// so only if it nearly fills its packet and is copied otherwise. Also returns whether it keeps
    /// little more than itself alive.
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

    /// Seven eighths of the packet or more. Without a known packet, small slices count as wasteful.
    #[inline]
    pub(super) fn nearly_fills(&self, length: usize) -> bool {
        8 * length >= self.nearly_full()
    }

    /// Eight times the bytes that nearly fill the packet.
    #[inline]
    pub(super) fn nearly_full(&self) -> usize {
        7 * self.packet.max(1024)
    }

    /// Counts the memory that the current packet keeps alive, and copies buffered data out of its
    /// packets if that is too much.
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
