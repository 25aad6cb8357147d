//! Chunks that are sent and not cumulatively acknowledged, in a ring indexed by the distance from
//! the cumulative TSN.

use anabranch_transport::Nanos;
use anabranch_wire::chunk::Data;
use anabranch_wire::extension::{FragmentPosition, IData};
use anabranch_wire::serial::Tsn;
use bytes::Bytes;

use super::fragmented_messages::FragmentedMessages;
use super::send_queue::Fragment;
use super::tsn_set::{TsnSets, step};

use crate::path::PathId;
use crate::shrinking_queue::Queue;

/// Maximum capacity in TSNs of the bit sets that is kept when no data is outstanding.
const KEPT: usize = 1024;

/// State of an outstanding chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChunkState {
    /// The chunk was sent, and counts in flightsize.
    InFlight,
    /// The chunk is considered lost and waits for retransmission. `timed_out`: because of T3-rtx,
    /// not of missing reports.
    Marked { timed_out: bool },
    /// The chunk was reported by a Gap Ack Block; the receiver may still renege (RFC 9260 §6.2.1).
    GapAcked,
    /// The chunk was abandoned, which counts as acknowledged (RFC 3758 §3.5 A2).
    Abandoned,
}

/// Outstanding DATA chunk.
#[derive(Clone, Debug)]
pub(super) struct OutstandingChunk {
    pub fragment: Fragment,
    pub state: ChunkState,
    /// Path of the last transmission.
    pub path: PathId,
    /// Whether the chunk was sent on another path before.
    pub moved: bool,
    /// Time of the last transmission.
    pub sent_at: Nanos,
    pub transmissions: u32,
    /// Whether the chunk was the first of its packet at the last transmission.
    pub begins_packet: bool,
    pub missing_reports: u32,
    /// Whether the chunk was fast retransmitted once (RFC 9260 §7.2.4 (5)).
    pub fast_retransmitted: bool,
    /// Whether a Gap Ack Block has reported the chunk, even if the receiver has reneged since.
    pub reported: bool,
}

/// State of an outstanding chunk, without its user data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    pub state: ChunkState,
    pub path: PathId,
    pub moved: bool,
    pub sent_at: Nanos,
    pub transmissions: u32,
    pub begins_packet: bool,
    pub fast_retransmitted: bool,
    pub reported: bool,
    /// Number of bytes of user data.
    pub length: usize,
}

impl OutstandingChunk {
    /// Chunk that is sent for the first time, on `path`.
    #[inline(always)]
    pub fn first(fragment: Fragment, path: PathId, now: Nanos, begins_packet: bool) -> Self {
        Self {
            fragment,
            state: ChunkState::InFlight,
            path,
            moved: false,
            sent_at: now,
            transmissions: 1,
            begins_packet,
            missing_reports: 0,
            fast_retransmitted: false,
            reported: false,
        }
    }

    #[inline]
    pub fn standing(&self) -> Standing {
        Standing {
            state: self.state,
            path: self.path,
            moved: self.moved,
            sent_at: self.sent_at,
            transmissions: self.transmissions,
            begins_packet: self.begins_packet,
            fast_retransmitted: self.fast_retransmitted,
            reported: self.reported,
            length: self.fragment.user_data.len(),
        }
    }

    /// DATA chunk to encode. It borrows the user data, so that no reference is counted.
    #[inline]
    pub fn to_data(&self, tsn: Tsn) -> Data<&[u8]> {
        Data {
            tsn,
            stream_id: self.fragment.stream,
            ssn: self.fragment.ssn,
            ppid: self.fragment.ppid,
            unordered: self.fragment.unordered,
            beginning: self.fragment.beginning,
            ending: self.fragment.ending,
            immediate: self.fragment.immediate,
            user_data: &self.fragment.user_data,
        }
    }

    /// I-DATA chunk to encode.
    pub fn to_i_data(&self, tsn: Tsn) -> IData<&[u8]> {
        let Fragment { ppid, fsn, .. } = self.fragment;
        IData {
            tsn,
            stream_id: self.fragment.stream,
            mid: self.fragment.mid,
            position: if self.fragment.beginning {
                FragmentPosition::First { ppid }
            } else {
                FragmentPosition::Later { fsn }
            },
            unordered: self.fragment.unordered,
            ending: self.fragment.ending,
            immediate: self.fragment.immediate,
            user_data: &self.fragment.user_data,
        }
    }
}

/// Ring of outstanding chunks. The first element has the TSN after the cumulative TSN. Lookups use
/// bit sets of TSNs instead of a scan of all chunks, because a peer chooses the TSNs that it
/// acknowledges and must not control the cost.
#[derive(Debug)]
pub(super) struct Outstanding {
    first: Tsn,
    ring: Queue<OutstandingChunk>,
    sets: TsnSets,
    marked: usize,
    /// Nonzero if chunks are marked or several paths are in use. The next chunk and its path must
    /// then be determined by a full check.
    look: usize,
    /// Lowest marked TSN, if any chunk is marked.
    first_marked: Tsn,
    gap_acked: usize,
    /// Number of bytes of user data in the chunks that `gap_acked` counts.
    gap_acked_bytes: usize,
    abandoned: usize,
    /// Number of chunks whose missing reports are ignored until they are retransmitted.
    judged: u32,
    payloads: FragmentedMessages,
}

impl Outstanding {
    #[inline(always)]
    pub fn new(initial_tsn: Tsn) -> Self {
        Self {
            first: initial_tsn,
            ring: Queue::default(),
            sets: TsnSets::default(),
            marked: 0,
            look: 0,
            first_marked: initial_tsn,
            gap_acked: 0,
            gap_acked_bytes: 0,
            abandoned: 0,
            judged: 0,
            payloads: FragmentedMessages::default(),
        }
    }

    /// Records that the next chunk to be added is the last fragment of the message `whole`.
    #[inline(never)]
    pub fn will_end(&mut self, whole: Bytes) {
        let tsn = self.next_tsn();
        self.payloads.keep(tsn, whole);
    }

    /// Unacknowledged chunks that were not abandoned, and the stored fragmented messages.
    pub fn into_parts(self) -> (impl Iterator<Item = (Tsn, Fragment)>, FragmentedMessages) {
        let first = self.first;
        let chunks = self.ring.into_iter().enumerate();
        let left = chunks.filter(|(_, it)| it.state != ChunkState::Abandoned);
        let parts = left.map(move |(at, it)| (first.add(at as u32), it.fragment));
        (parts, self.payloads)
    }

    /// Cumulative TSN that the peer has acknowledged.
    pub fn cumulative_point(&self) -> Tsn {
        self.first.prev()
    }

    /// TSN of the next new chunk.
    pub fn next_tsn(&self) -> Tsn {
        self.first.add(self.ring.len() as u32)
    }

    pub fn len(&self) -> usize {
        self.ring.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Number of chunks reported by Gap Ack Blocks, including reneged ones.
    pub fn gap_acked(&self) -> usize {
        self.gap_acked
    }

    /// Number of bytes of user data in the chunks counted by [`Self::gap_acked`], which may have to
    /// be retransmitted.
    pub fn gap_acked_bytes(&self) -> usize {
        self.gap_acked_bytes
    }

    /// Number of abandoned chunks that are not cumulatively acknowledged.
    pub fn abandoned(&self) -> usize {
        self.abandoned
    }

    #[inline]
    fn index(&self, tsn: Tsn) -> Option<usize> {
        step();
        let distance = tsn.distance_from(self.first) as usize;
        (distance < self.ring.len()).then_some(distance)
    }

    pub fn get(&self, tsn: Tsn) -> Option<&OutstandingChunk> {
        self.index(tsn).map(|index| &self.ring[index])
    }

    /// Adds a chunk in flight with TSN [`Outstanding::next_tsn`]. Returns a reference to it.
    #[inline(always)]
    pub fn push(&mut self, chunk: OutstandingChunk) -> &OutstandingChunk {
        if self.ring.is_full() {
            return self.push_full(chunk);
        }
        let (tsn, path) = (self.next_tsn(), chunk.path);
        let at = self.ring.len();
        self.ring.push_back(chunk);
        self.sets.put_on(path, tsn);
        &self.ring[at]
    }

    /// Like [`Self::push`], if the ring is full. The bit sets have the same capacity as the ring.
    #[cold]
    #[inline(never)]
    fn push_full(&mut self, chunk: OutstandingChunk) -> &OutstandingChunk {
        self.ring.make_room();
        if self.ring.capacity() > self.sets.capacity() {
            let next = self.next_tsn();
            self.sets.grow(self.ring.capacity(), self.first, next);
        }
        self.push(chunk)
    }

    /// Removes the chunk after the cumulative TSN if its TSN is at most `up_to`. Returns its state.
    #[inline]
    pub fn pop_up_to(&mut self, up_to: Tsn) -> Option<(Tsn, Standing)> {
        if !self.first.le(up_to) {
            return None;
        }
        step();
        let chunk = self.ring.front()?.standing();
        let tsn = self.first;
        if let Some(popped) = self.ring.pop_front() {
            self.payloads.pass(tsn, &popped.fragment);
        }
        self.first = tsn.next();
        if self.judged > 0 {
            self.judged -= self.sets.forget_judged(tsn, 1);
        }
        if chunk.state == ChunkState::InFlight {
            self.sets.take_off(chunk.path, tsn);
        } else {
            self.no_longer_out(tsn, &chunk);
        }
        if self.ring.is_empty() && self.sets.capacity() > KEPT {
            self.sets.release();
        }
        Some((tsn, chunk))
    }

    /// Whether every chunk is in flight: no chunk is marked, reported by a gap ack block or
    /// abandoned.
    #[inline]
    pub fn all_in_flight(&self) -> bool {
        self.marked + self.gap_acked + self.abandoned == 0
    }

    /// Like [`Self::pop_up_to`] for the next `count` chunks, which are all in flight on the only
    /// path. Calls `each` for them in order.
    #[inline(always)]
    pub fn pop_in_flight(&mut self, count: u32, mut each: impl FnMut(Tsn, &OutstandingChunk)) {
        let begin = self.first;
        for _ in 0..count {
            step();
            let Some(chunk) = self.ring.pop_of_run() else {
                break;
            };
            each(self.first, &chunk);
            self.payloads.pass(self.first, &chunk.fragment);
            self.first = self.first.next();
        }
        self.ring.end_run();
        if self.judged > 0 {
            self.judged -= self.sets.forget_judged(begin, count);
        }
        if self.ring.is_empty() && self.sets.capacity() > KEPT {
            self.sets.release();
        }
    }

    /// Updates the counters and sets after the removal of chunk `tsn`, which was not in flight.
    fn no_longer_out(&mut self, tsn: Tsn, chunk: &Standing) {
        match chunk.state {
            ChunkState::GapAcked => {
                self.gap_acked -= 1;
                self.gap_acked_bytes -= chunk.length;
                self.no_longer_acked(tsn);
            }
            ChunkState::Abandoned => self.no_longer_abandoned(tsn),
            ChunkState::InFlight => self.sets.take_off(chunk.path, tsn),
            ChunkState::Marked { .. } => {
                self.sets.take_off(chunk.path, tsn);
                self.unmarked(tsn);
            }
        }
    }

    fn no_longer_acked(&mut self, tsn: Tsn) {
        let (word, bit) = self.sets.word(tsn);
        word.acked &= !bit;
    }

    #[cold]
    fn no_longer_abandoned(&mut self, tsn: Tsn) {
        self.no_longer_acked(tsn);
        let (word, bit) = self.sets.word(tsn);
        word.abandoned &= !bit;
        self.abandoned -= 1;
    }

    /// Abandons a chunk and releases its user data. Returns its previous state; `None` if it is not
    /// in the ring or already abandoned. The chunk stays in the ring until the cumulative TSN
    /// passes it.
    pub fn abandon(&mut self, tsn: Tsn) -> Option<Standing> {
        let before = self.get(tsn)?.standing();
        if before.state == ChunkState::Abandoned {
            return None;
        }
        // In the bit sets the chunk counts as acknowledged, so that no search for unacknowledged
        // chunks finds it.
        self.set_state(tsn, ChunkState::GapAcked);
        self.gap_acked -= 1;
        self.gap_acked_bytes -= before.length;
        let chunk = self.get_mut(tsn)?;
        chunk.state = ChunkState::Abandoned;
        chunk.fragment.user_data = Bytes::new();
        if chunk.fragment.ends_several() {
            self.payloads.forget(tsn);
        }
        self.abandoned += 1;
        self.set_reportable(tsn, false);
        let (word, bit) = self.sets.word(tsn);
        word.abandoned |= bit;
        Some(before)
    }

    /// Sets the state of a chunk. Returns the previous state; `None` if the TSN is not in the ring.
    pub fn set_state(&mut self, tsn: Tsn, state: ChunkState) -> Option<ChunkState> {
        let index = self.index(tsn)?;
        let chunk = &mut self.ring[index];
        let (path, length) = (chunk.path, chunk.fragment.user_data.len());
        let before = std::mem::replace(&mut chunk.state, state);
        match (
            before == ChunkState::GapAcked,
            state == ChunkState::GapAcked,
        ) {
            (false, true) => {
                self.gap_acked += 1;
                self.gap_acked_bytes += length;
                let (word, bit) = self.sets.word(tsn);
                word.acked |= bit;
                self.sets.take_off(path, tsn);
            }
            (true, false) => {
                self.gap_acked -= 1;
                self.gap_acked_bytes -= length;
                self.no_longer_acked(tsn);
                self.sets.put_on(path, tsn);
            }
            _ => {}
        }
        let was = matches!(before, ChunkState::Marked { .. });
        let is = matches!(state, ChunkState::Marked { .. });
        if is && !was {
            if self.marked == 0 || tsn.lt(self.first_marked) {
                self.first_marked = tsn;
            }
            let (word, bit) = self.sets.word(tsn);
            word.marked |= bit;
            self.marked += 1;
            self.look += 1;
        } else if was && !is {
            self.unmarked(tsn);
        }
        Some(before)
    }

    pub fn get_mut(&mut self, tsn: Tsn) -> Option<&mut OutstandingChunk> {
        self.index(tsn).map(|index| &mut self.ring[index])
    }

    /// Records that an unacknowledged chunk is sent on `path`.
    pub fn move_to(&mut self, tsn: Tsn, path: PathId) {
        let Some(chunk) = self.get_mut(tsn) else {
            return;
        };
        let from = std::mem::replace(&mut chunk.path, path);
        if from != path {
            self.sets.take_off(from, tsn);
            self.sets.put_on(path, tsn);
        }
    }

    /// Sets whether missing reports for a chunk count.
    pub fn set_reportable(&mut self, tsn: Tsn, counts: bool) {
        if self.index(tsn).is_none() {
            return;
        }
        let (word, bit) = self.sets.word(tsn);
        let was = word.judged & bit != 0;
        if counts && was {
            word.judged &= !bit;
            self.judged -= 1;
        } else if !counts && !was {
            word.judged |= bit;
            self.judged += 1;
        }
    }

    /// Finds the next lowest marked TSN, because `tsn` is no longer marked.
    fn unmarked(&mut self, tsn: Tsn) {
        let (word, bit) = self.sets.word(tsn);
        word.marked &= !bit;
        self.marked -= 1;
        self.look -= 1;
        if self.marked > 0 && tsn == self.first_marked {
            self.first_marked = self.next_marked(tsn.next()).unwrap_or(tsn);
        }
    }

    /// `from`, or the first TSN of the ring if that is later.
    #[inline]
    fn at_least_first(&self, from: Tsn) -> Tsn {
        if from.lt(self.first) {
            self.first
        } else {
            from
        }
    }

    /// Lowest marked TSN from `from` on.
    pub fn next_marked(&self, from: Tsn) -> Option<Tsn> {
        let (from, end) = (self.at_least_first(from), self.next_tsn());
        self.sets.next(from, end, |word| word.marked)
    }

    /// Lowest marked TSN from `from` on that was last sent on `path`.
    pub fn next_marked_on(&self, path: PathId, from: Tsn) -> Option<Tsn> {
        let from = self.at_least_first(from);
        self.sets.next_marked_on(path, from, self.next_tsn())
    }

    /// Sets that several paths are in use.
    pub fn use_paths_at_once(&mut self) {
        self.look += 1;
    }

    /// Requests a full check, because chunks other than new data may be next.
    pub fn look_closer(&mut self) {
        self.look += 1;
    }

    /// Reverts one call of [`Self::look_closer`], once the chunks that caused it were sent or need
    /// not be sent any more.
    pub fn look_no_more(&mut self) {
        self.look -= 1;
    }

    /// Whether the next chunk may be a retransmission, or new data for a path other than the usual
    /// one.
    #[inline]
    pub fn takes_a_look(&self) -> bool {
        self.look > 0
    }

    /// Lowest marked TSN.
    pub fn first_marked(&self) -> Option<Tsn> {
        (self.marked > 0).then_some(self.first_marked)
    }

    /// Highest sent TSN that is not marked for retransmission.
    pub fn highest_unmarked(&self) -> Option<Tsn> {
        self.sets
            .last(self.first, self.next_tsn(), |word| !word.marked)
    }

    /// Lowest unacknowledged TSN that was last sent on `path`, from `bound` on.
    pub fn earliest_on(&self, path: PathId, bound: Tsn) -> Option<Tsn> {
        self.sets
            .next_on(path, self.at_least_first(bound), self.next_tsn())
    }

    /// Lowest TSN in `from..end` that no Gap Ack Block has reported.
    pub fn next_unacked(&self, from: Tsn, end: Tsn) -> Option<Tsn> {
        debug_assert!(end.le(self.next_tsn()), "what was never sent is in no set");
        self.sets.next(from, end, |word| !word.acked)
    }

    /// Lowest TSN in `from..end` that a Gap Ack Block has reported.
    pub fn next_gap_acked(&self, from: Tsn, end: Tsn) -> Option<Tsn> {
        self.sets
            .next(from, end, |word| word.acked & !word.abandoned)
    }

    /// Like [`Outstanding::next_reportable`], for chunks last sent on `path`.
    pub fn next_reportable_on(&self, path: PathId, from: Tsn, end: Tsn) -> Option<Tsn> {
        let from = self.at_least_first(from);
        self.sets.next_reportable_on(path, from, end)
    }

    /// Lowest TSN in `from..end` whose missing reports count.
    pub fn next_reportable(&self, from: Tsn, end: Tsn) -> Option<Tsn> {
        let next_tsn = self.next_tsn();
        let end = if end.lt(next_tsn) { end } else { next_tsn };
        self.sets
            .next(self.at_least_first(from), end, |word| !word.judged)
    }
}

#[cfg(test)]
mod tests;
