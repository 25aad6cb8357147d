//! Chunks sent and not yet cumulatively acknowledged: a ring indexed by the distance from the cumulative point.

use anabranch_transport::Nanos;
use anabranch_wire::chunk::Data;
use anabranch_wire::extension::{IData, Piece};
use anabranch_wire::serial::Tsn;

use super::send_queue::Fragment;
use super::tsn_set::{TsnSets, step};
use crate::path::PathId;
use crate::queue::Queue;

/// With nothing outstanding, sets for no more chunks than this keep their memory.
const KEPT: usize = 1024;

/// Where a chunk stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChunkState {
    /// Sent, and counted in flightsize.
    InFlight,
    /// Taken for lost; waits to be sent again. `timed_out`: by T3-rtx, not by missing reports.
    Marked { timed_out: bool },
    /// Reported by a Gap Ack Block; the receiver may still withdraw it (RFC 9260 §6.2.1).
    GapAcked,
    /// Given up: as good as acknowledged (RFC 3758 §3.5 A2).
    Abandoned,
}

/// One DATA chunk in the ring.
#[derive(Clone, Debug)]
pub(super) struct Outgoing {
    pub fragment: Fragment,
    pub state: ChunkState,
    /// Where it was last sent.
    pub path: PathId,
    /// It was sent on another path before.
    pub moved: bool,
    /// When it was last sent.
    pub sent_at: Nanos,
    pub transmissions: u32,
    /// It was the first of its packet, when it was last sent.
    pub begins_packet: bool,
    pub missing_reports: u32,
    /// It was retransmitted fast once (RFC 9260 §7.2.4 (5)).
    pub fast_retransmitted: bool,
}

/// What the bookkeeping needs of a chunk, without its data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    pub state: ChunkState,
    pub path: PathId,
    pub moved: bool,
    pub sent_at: Nanos,
    pub transmissions: u32,
    pub begins_packet: bool,
    pub fast_retransmitted: bool,
    /// Bytes of user data.
    pub length: usize,
}

impl Outgoing {
    /// A chunk that goes for the first time, over `path`.
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
            length: self.fragment.user_data.len(),
        }
    }

    /// The chunk as it goes on the wire; its data is lent, which counts no reference.
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

    /// The chunk where messages are interleaved.
    pub fn to_i_data(&self, tsn: Tsn) -> IData<&[u8]> {
        let Fragment { ppid, fsn, .. } = self.fragment;
        IData {
            tsn,
            stream_id: self.fragment.stream,
            mid: self.fragment.mid,
            piece: if self.fragment.beginning {
                Piece::First { ppid }
            } else {
                Piece::Later { fsn }
            },
            unordered: self.fragment.unordered,
            ending: self.fragment.ending,
            immediate: self.fragment.immediate,
            user_data: &self.fragment.user_data,
        }
    }
}

/// The ring. Its first element is the TSN after the cumulative point.
///
/// Beside it stand sets, so that what an acknowledgement asks for is found without a look at every chunk: a peer chooses
/// what it acknowledges, and must not choose how long that takes.
#[derive(Debug)]
pub(super) struct Outstanding {
    first: Tsn,
    ring: Queue<Outgoing>,
    sets: TsnSets,
    marked: usize,
    /// Not 0 while any is marked, or paths are used at once: then it takes a look to tell what goes next, and where.
    look: usize,
    /// The lowest marked TSN, while any is marked.
    first_marked: Tsn,
    gap_acked: usize,
    abandoned: usize,
}

impl Outstanding {
    pub fn new(initial_tsn: Tsn) -> Self {
        Self {
            first: initial_tsn,
            ring: Queue::default(),
            sets: TsnSets::default(),
            marked: 0,
            look: 0,
            first_marked: initial_tsn,
            gap_acked: 0,
            abandoned: 0,
        }
    }

    /// The last TSN cumulatively acknowledged.
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

    /// Chunks that a Gap Ack Block has reported, withdrawn or not.
    pub fn gap_acked(&self) -> usize {
        self.gap_acked
    }

    /// Chunks that were given up and are not cumulatively acknowledged.
    pub fn abandoned(&self) -> usize {
        self.abandoned
    }

    #[inline]
    fn index(&self, tsn: Tsn) -> Option<usize> {
        step();
        let distance = tsn.distance_from(self.first) as usize;
        (distance < self.ring.len()).then_some(distance)
    }

    pub fn get(&self, tsn: Tsn) -> Option<&Outgoing> {
        self.index(tsn).map(|index| &self.ring[index])
    }

    /// Adds a chunk, which is in flight, with the TSN [`Outstanding::next_tsn`]. Gives it where it lies now.
    #[inline(always)]
    pub fn push(&mut self, chunk: Outgoing) -> &Outgoing {
        let (tsn, path) = (self.next_tsn(), chunk.path);
        let at = self.ring.len();
        self.ring.push_back(chunk);
        if self.ring.len() > self.sets.capacity() {
            // As many as the ring has room for.
            self.sets.grow(self.ring.capacity(), self.first, tsn);
        }
        let (word, bit) = self.sets.word(tsn);
        word.unacked |= bit;
        word.reportable |= bit;
        self.sets.put_on(path, tsn);
        &self.ring[at]
    }

    /// Lets go of the chunk after the cumulative point, if its TSN is not past `up_to`, and tells how it stood.
    #[inline]
    pub fn pop_up_to(&mut self, up_to: Tsn) -> Option<(Tsn, Standing)> {
        if !self.first.le(up_to) {
            return None;
        }
        step();
        let chunk = self.ring.front()?.standing();
        self.ring.pop_front();
        let tsn = self.first;
        self.first = tsn.next();
        let (word, bit) = self.sets.word(tsn);
        word.reportable &= !bit;
        word.unacked &= !bit;
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

    /// Whether every chunk is in flight: none is marked, reported by a Gap Ack Block or given up.
    #[inline]
    pub fn all_in_flight(&self) -> bool {
        self.marked + self.gap_acked + self.abandoned == 0
    }

    /// As [`Self::pop_up_to`] for the next `count` chunks at once, where all are in flight on the only path; `each` is shown them in order.
    #[inline(always)]
    pub fn pop_in_flight(&mut self, count: u32, mut each: impl FnMut(Tsn, &Outgoing)) {
        let begin = self.first;
        for _ in 0..count {
            step();
            let Some(chunk) = self.ring.pop_front() else {
                break;
            };
            each(self.first, &chunk);
            self.first = self.first.next();
        }
        self.sets.acknowledged(begin, count);
        if self.ring.is_empty() && self.sets.capacity() > KEPT {
            self.sets.release();
        }
    }

    /// The chunk `tsn`, which was not in flight, is let go of.
    fn no_longer_out(&mut self, tsn: Tsn, chunk: &Standing) {
        match chunk.state {
            ChunkState::GapAcked => self.gap_acked -= 1,
            ChunkState::Abandoned => self.no_longer_abandoned(tsn),
            ChunkState::InFlight => self.sets.take_off(chunk.path, tsn),
            ChunkState::Marked { .. } => {
                self.sets.take_off(chunk.path, tsn);
                self.unmarked(tsn);
            }
        }
    }

    #[cold]
    fn no_longer_abandoned(&mut self, tsn: Tsn) {
        let (word, bit) = self.sets.word(tsn);
        word.abandoned &= !bit;
        self.abandoned -= 1;
    }

    /// Gives up a chunk, and tells how it stood before; `None` if it is not in the ring, or given up already. It stays that way
    /// until the cumulative point passes it.
    pub fn abandon(&mut self, tsn: Tsn) -> Option<Standing> {
        let before = self.get(tsn)?.standing();
        if before.state == ChunkState::Abandoned {
            return None;
        }
        // No search for what is not acknowledged finds it from now on.
        self.set_state(tsn, ChunkState::GapAcked);
        self.gap_acked -= 1;
        self.get_mut(tsn)?.state = ChunkState::Abandoned;
        self.abandoned += 1;
        let (word, bit) = self.sets.word(tsn);
        word.reportable &= !bit;
        word.abandoned |= bit;
        Some(before)
    }

    /// Puts a chunk in another state and tells which it was in; `None` if the TSN is not in the ring.
    pub fn set_state(&mut self, tsn: Tsn, state: ChunkState) -> Option<ChunkState> {
        let index = self.index(tsn)?;
        let chunk = &mut self.ring[index];
        let path = chunk.path;
        let before = std::mem::replace(&mut chunk.state, state);
        match (
            before == ChunkState::GapAcked,
            state == ChunkState::GapAcked,
        ) {
            (false, true) => {
                self.gap_acked += 1;
                let (word, bit) = self.sets.word(tsn);
                word.unacked &= !bit;
                self.sets.take_off(path, tsn);
            }
            (true, false) => {
                self.gap_acked -= 1;
                let (word, bit) = self.sets.word(tsn);
                word.unacked |= bit;
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

    pub fn get_mut(&mut self, tsn: Tsn) -> Option<&mut Outgoing> {
        self.index(tsn).map(|index| &mut self.ring[index])
    }

    /// A chunk that is not acknowledged goes out on `path`.
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

    /// Whether missing reports of a chunk count for something from now on.
    pub fn set_reportable(&mut self, tsn: Tsn, counts: bool) {
        let (word, bit) = self.sets.word(tsn);
        if counts {
            word.reportable |= bit;
        } else {
            word.reportable &= !bit;
        }
    }

    /// `tsn` is no longer marked: finds the lowest that still is.
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

    /// Paths are used at once.
    pub fn use_paths_at_once(&mut self) {
        self.look += 1;
    }

    /// Something beside new data may go next: it takes a look.
    pub fn look_closer(&mut self) {
        self.look += 1;
    }

    /// That has gone, or is not to go any more.
    pub fn look_no_more(&mut self) {
        self.look -= 1;
    }

    /// Whether what goes next, and where, is not plainly new data on the path for it.
    #[inline]
    pub fn takes_a_look(&self) -> bool {
        self.look > 0
    }

    /// The lowest marked TSN.
    pub fn first_marked(&self) -> Option<Tsn> {
        (self.marked > 0).then_some(self.first_marked)
    }

    /// The highest TSN sent that does not wait to be sent again.
    pub fn highest_unmarked(&self) -> Option<Tsn> {
        self.sets
            .last(self.first, self.next_tsn(), |word| !word.marked)
    }

    /// The lowest TSN last sent on `path` and not acknowledged in any way, looking from `bound` on.
    pub fn earliest_on(&self, path: PathId, bound: Tsn) -> Option<Tsn> {
        self.sets
            .next_on(path, self.at_least_first(bound), self.next_tsn())
    }

    /// The lowest TSN from `from` to before `end` that no Gap Ack Block has reported.
    pub fn next_unacked(&self, from: Tsn, end: Tsn) -> Option<Tsn> {
        self.sets.next(from, end, |word| word.unacked)
    }

    /// The lowest TSN from `from` to before `end` that a Gap Ack Block has reported.
    pub fn next_gap_acked(&self, from: Tsn, end: Tsn) -> Option<Tsn> {
        self.sets
            .next(from, end, |word| !word.unacked & !word.abandoned)
    }

    /// As [`Outstanding::next_reportable`], of those last sent on `path`.
    pub fn next_reportable_on(&self, path: PathId, from: Tsn, end: Tsn) -> Option<Tsn> {
        let from = self.at_least_first(from);
        self.sets.next_reportable_on(path, from, end)
    }

    /// The lowest TSN from `from` to before `end` whose missing reports count for something.
    pub fn next_reportable(&self, from: Tsn, end: Tsn) -> Option<Tsn> {
        let next_tsn = self.next_tsn();
        let end = if end.lt(next_tsn) { end } else { next_tsn };
        self.sets
            .next(self.at_least_first(from), end, |word| word.reportable)
    }
}

#[cfg(test)]
mod tests {
    use anabranch_wire::serial::{Fsn, Mid, Ssn};
    use bytes::Bytes;

    use super::*;

    fn chunk(path: u8) -> Outgoing {
        let user_data = Bytes::from_static(b"x");
        let fragment = Fragment {
            stream: 0,
            ssn: Ssn(0),
            mid: Mid(0),
            fsn: Fsn(0),
            ppid: 0,
            unordered: false,
            beginning: true,
            ending: true,
            immediate: false,
            user_data,
        };
        Outgoing {
            fragment,
            state: ChunkState::InFlight,
            path: PathId(path),
            moved: false,
            sent_at: 0,
            transmissions: 1,
            begins_packet: true,
            missing_reports: 0,
            fast_retransmitted: false,
        }
    }

    #[test]
    fn marks_are_found_lowest_first_across_the_wrap() {
        let start = Tsn(u32::MAX - 2);
        let mut ring = Outstanding::new(start);
        for _ in 0..8 {
            ring.push(chunk(0));
        }
        assert_eq!(ring.next_tsn(), Tsn(5));
        let marked = ChunkState::Marked { timed_out: false };
        for offset in [6, 2, 4] {
            ring.set_state(start.add(offset), marked);
        }
        assert_eq!(ring.first_marked(), Some(start.add(2)));
        assert_eq!(
            ring.set_state(start.add(2), ChunkState::InFlight),
            Some(marked)
        );
        assert_eq!(ring.first_marked(), Some(start.add(4)));
        while ring.pop_up_to(start.add(4)).is_some() {}
        assert_eq!(
            (ring.cumulative_point(), ring.first_marked()),
            (start.add(4), Some(start.add(6)))
        );
        assert_eq!(ring.highest_unmarked(), Some(start.add(7)));
        assert_eq!(ring.set_state(start, marked), None, "already acknowledged");
        ring.pop_up_to(Tsn(4));
        ring.pop_up_to(Tsn(4));
        assert_eq!(ring.first_marked(), None);
    }

    /// The sets and counts against a look at every chunk, after each of many steps drawn at random.
    #[test]
    fn the_sets_agree_with_the_chunks() {
        let mut random = 0x9e37_79b9_u32;
        let mut draw = |below: usize| {
            random ^= random << 13;
            random ^= random >> 17;
            random ^= random << 5;
            random as usize % below
        };
        let mut ring = Outstanding::new(Tsn(u32::MAX - 200));
        for round in 0..20_000 {
            let len = ring.len();
            let any = ring.first.add(draw(len.max(1)) as u32);
            match draw(8) {
                0..=2 if len < 900 => {
                    ring.push(chunk(draw(3) as u8));
                }
                3 if round % 500 < 50 => {
                    ring.pop_up_to(ring.first.add(2));
                }
                4 => drop(ring.set_state(any, ChunkState::GapAcked)),
                5 => drop(ring.set_state(any, ChunkState::Marked { timed_out: true })),
                6 => drop(ring.set_state(any, ChunkState::InFlight)),
                _ if ring
                    .get(any)
                    .is_some_and(|it| it.state != ChunkState::GapAcked) =>
                {
                    ring.move_to(any, PathId(draw(3) as u8));
                }
                _ => {}
            }
            let all =
                || (0..ring.len()).map(|index| (ring.first.add(index as u32), &ring.ring[index]));
            let marked = |it: &Outgoing| matches!(it.state, ChunkState::Marked { .. });
            let first = |wanted: &dyn Fn(&Outgoing) -> bool| {
                all().find(|(_, it)| wanted(it)).map(|(tsn, _)| tsn)
            };
            assert_eq!(ring.first_marked(), first(&marked), "round {round}");
            let unmarked = all().rfind(|(_, it)| !marked(it));
            assert_eq!(ring.highest_unmarked(), unmarked.map(|(tsn, _)| tsn));
            let gap_acked = |it: &Outgoing| it.state == ChunkState::GapAcked;
            assert_eq!(
                ring.gap_acked(),
                all().filter(|(_, it)| gap_acked(it)).count()
            );
            let (begin, end) = (ring.first, ring.next_tsn());
            assert_eq!(ring.next_gap_acked(begin, end), first(&gap_acked));
            assert_eq!(ring.next_unacked(begin, end), first(&|it| !gap_acked(it)));
            for path in (0..3).map(PathId) {
                let on = |it: &Outgoing| it.path == path && !gap_acked(it);
                assert_eq!(ring.earliest_on(path, begin), first(&on), "round {round}");
                let marked_on = |it: &Outgoing| on(it) && marked(it);
                assert_eq!(ring.next_marked_on(path, begin), first(&marked_on));
            }
        }
    }

    #[test]
    fn the_earliest_of_each_path_skips_what_gaps_acknowledge() {
        let mut ring = Outstanding::new(Tsn(10));
        for path in [0, 1, 0, 1] {
            ring.push(chunk(path));
        }
        assert_eq!(ring.earliest_on(PathId(1), Tsn(0)), Some(Tsn(11)));
        ring.set_state(Tsn(11), ChunkState::GapAcked);
        assert_eq!(ring.earliest_on(PathId(1), Tsn(11)), Some(Tsn(13)));
        assert_eq!(ring.earliest_on(PathId(2), Tsn(10)), None);
    }
}
