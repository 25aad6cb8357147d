//! Chunks sent and not cumulatively acknowledged: a ring indexed by the distance from the
//! cumulative TSN.

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

/// Without outstanding data, sets for at most this number of chunks keep their memory.
const KEPT: usize = 1024;

/// State of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChunkState {
    /// Sent, and counted in flightsize.
    InFlight,
    /// Considered lost; waits for retransmission. `timed_out`: by T3-rtx, not by missing reports.
    Marked { timed_out: bool },
    /// Reported by a gap ack block; the receiver may still renege (RFC 9260 §6.2.1).
    GapAcked,
    /// Abandoned, which counts as acknowledged (RFC 3758 §3.5 A2).
    Abandoned,
}

/// A DATA chunk in the ring.
#[derive(Clone, Debug)]
pub(super) struct OutstandingChunk {
    pub fragment: Fragment,
    pub state: ChunkState,
    /// Path of the last transmission.
    pub path: PathId,
    /// The chunk was sent on another path before.
    pub moved: bool,
    /// Time of the last transmission.
    pub sent_at: Nanos,
    pub transmissions: u32,
    /// The chunk was the first of its packet at the last transmission.
    pub begins_packet: bool,
    pub missing_reports: u32,
    /// The chunk was fast retransmitted once (RFC 9260 §7.2.4 (5)).
    pub fast_retransmitted: bool,
    /// A gap ack block has reported it; the receiver may have reneged since.
    pub reported: bool,
}

/// State of a chunk without its data.
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
    /// Bytes of user data.
    pub length: usize,
}

impl OutstandingChunk {
    /// A chunk sent for the first time on `path`.
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

    /// The DATA chunk for the wire; it borrows the data without a reference count.
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

    /// The I-DATA chunk for the wire.
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

/// The ring. The first element is the TSN after the cumulative TSN.
///
/// Additional sets allow lookups without a walk over all chunks, because a peer chooses the TSNs
/// that it acknowledges and must not control the cost.
#[derive(Debug)]
pub(super) struct Outstanding {
    first: Tsn,
    ring: Queue<OutstandingChunk>,
    sets: TsnSets,
    marked: usize,
    /// Nonzero if chunks are marked or several paths are in use: the next chunk and its path must
    /// then be determined.
    look: usize,
    /// The lowest marked TSN while any is marked.
    first_marked: Tsn,
    gap_acked: usize,
    /// User data of these, bytes.
    gap_acked_bytes: usize,
    abandoned: usize,
    /// Chunks whose missing reports are ignored until they are retransmitted.
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

    /// The next chunk to be added is the last fragment of the message `whole`.
    #[inline(never)]
    pub fn will_end(&mut self, whole: Bytes) {
        let tsn = self.next_tsn();
        self.payloads.keep(tsn, whole);
    }

    /// Unacknowledged chunks that were not abandoned, and the fragmented messages.
    pub fn into_parts(self) -> (impl Iterator<Item = (Tsn, Fragment)>, FragmentedMessages) {
        let first = self.first;
        let chunks = self.ring.into_iter().enumerate();
        let left = chunks.filter(|(_, it)| it.state != ChunkState::Abandoned);
        let parts = left.map(move |(at, it)| (first.add(at as u32), it.fragment));
        (parts, self.payloads)
    }

    /// The last cumulatively acknowledged TSN.
    pub fn cumulative_point(&self) -> Tsn {
        self.first.prev()
    }

    /// The TSN of the next new chunk.
    pub fn next_tsn(&self) -> Tsn {
        self.first.add(self.ring.len() as u32)
    }

    pub fn len(&self) -> usize {
        self.ring.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Chunks that a gap ack block has reported, reneged or not.
    pub fn gap_acked(&self) -> usize {
        self.gap_acked
    }

    /// User data counted by [`Self::gap_acked`], bytes: the receiver may still request it.
    pub fn gap_acked_bytes(&self) -> usize {
        self.gap_acked_bytes
    }

    /// Abandoned chunks that are not cumulatively acknowledged.
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

    /// Adds a chunk in flight with the TSN [`Outstanding::next_tsn`]. Returns its reference.
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

    /// Like [`Self::push`], if the ring is full. The sets have the same capacity as the ring.
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

    /// Removes the chunk after the cumulative TSN, if its TSN is not past `up_to`. Returns its
    /// state.
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

    /// Like [`Self::pop_up_to`] for the next `count` chunks, all in flight on the only path; calls
    /// `each` in order.
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

    /// Chunk `tsn`, which was not in flight, is removed.
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

    /// Abandons a chunk and releases its user data. Returns its former state; `None` if it is not
    /// in the ring or abandoned already. The chunk stays abandoned until the cumulative TSN passes
    /// it.
    pub fn abandon(&mut self, tsn: Tsn) -> Option<Standing> {
        let before = self.get(tsn)?.standing();
        if before.state == ChunkState::Abandoned {
            return None;
        }
        // No search for unacknowledged chunks finds it from now on.
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

    /// Sets the state of a chunk. Returns the former state; `None` if the TSN is not in the ring.
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

    /// An unacknowledged chunk is sent on `path`.
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

    /// Sets whether missing reports of a chunk count.
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

    /// `tsn` is no longer marked: finds the next lowest one.
    fn unmarked(&mut self, tsn: Tsn) {
        let (word, bit) = self.sets.word(tsn);
        word.marked &= !bit;
        self.marked -= 1;
        self.look -= 1;
        if self.marked > 0 && tsn == self.first_marked {
            self.first_marked = self.next_marked(tsn.next()).unwrap_or(tsn);
        }
    }

    /// The later of `from` and the first TSN of the ring.
    #[inline]
    fn at_least_first(&self, from: Tsn) -> Tsn {
        if from.lt(self.first) {
            self.first
        } else {
            from
        }
    }

    /// The lowest marked TSN from `from` on.
    pub fn next_marked(&self, from: Tsn) -> Option<Tsn> {
        let (from, end) = (self.at_least_first(from), self.next_tsn());
        self.sets.next(from, end, |word| word.marked)
    }

    /// The lowest marked TSN from `from` on that was last sent on `path`.
    pub fn next_marked_on(&self, path: PathId, from: Tsn) -> Option<Tsn> {
        let from = self.at_least_first(from);
        self.sets.next_marked_on(path, from, self.next_tsn())
    }

    /// Several paths are in use.
    pub fn use_paths_at_once(&mut self) {
        self.look += 1;
    }

    /// Chunks other than new data may be next, so a full check is required.
    pub fn look_closer(&mut self) {
        self.look += 1;
    }

    /// These chunks were sent, or need not be sent any more.
    pub fn look_no_more(&mut self) {
        self.look -= 1;
    }

    /// Whether the next chunk may be other than new data, or on another path than the path for new
    /// data.
    #[inline]
    pub fn takes_a_look(&self) -> bool {
        self.look > 0
    }

    /// The lowest marked TSN.
    pub fn first_marked(&self) -> Option<Tsn> {
        (self.marked > 0).then_some(self.first_marked)
    }

    /// The highest TSN sent that does not wait for retransmission.
    pub fn highest_unmarked(&self) -> Option<Tsn> {
        self.sets
            .last(self.first, self.next_tsn(), |word| !word.marked)
    }

    /// The lowest unacknowledged TSN last sent on `path`, from `bound` on.
    pub fn earliest_on(&self, path: PathId, bound: Tsn) -> Option<Tsn> {
        self.sets
            .next_on(path, self.at_least_first(bound), self.next_tsn())
    }

    /// The lowest TSN in `from..end` not reported by a gap ack block.
    pub fn next_unacked(&self, from: Tsn, end: Tsn) -> Option<Tsn> {
        debug_assert!(end.le(self.next_tsn()), "what was never sent is in no set");
        self.sets.next(from, end, |word| !word.acked)
    }

    /// The lowest TSN in `from..end` reported by a gap ack block.
    pub fn next_gap_acked(&self, from: Tsn, end: Tsn) -> Option<Tsn> {
        self.sets
            .next(from, end, |word| word.acked & !word.abandoned)
    }

    /// Like [`Outstanding::next_reportable`], for chunks last sent on `path`.
    pub fn next_reportable_on(&self, path: PathId, from: Tsn, end: Tsn) -> Option<Tsn> {
        let from = self.at_least_first(from);
        self.sets.next_reportable_on(path, from, end)
    }

    /// The lowest TSN in `from..end` whose missing reports count.
    pub fn next_reportable(&self, from: Tsn, end: Tsn) -> Option<Tsn> {
        let next_tsn = self.next_tsn();
        let end = if end.lt(next_tsn) { end } else { next_tsn };
        self.sets
            .next(self.at_least_first(from), end, |word| !word.judged)
    }
}

#[cfg(test)]
mod tests;
