//! Chunks sent and not yet cumulatively acknowledged: a ring indexed by the distance from the cumulative point.

use anabranch_transport::Nanos;
use anabranch_wire::chunk::Data;
use anabranch_wire::serial::Tsn;

use super::send_queue::Fragment;
use crate::path::PathId;
use crate::queue::Queue;

/// Where a chunk stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChunkState {
    /// Sent, and counted in flightsize.
    InFlight,
    /// Taken for lost; waits to be sent again. `timed_out`: by T3-rtx, not by missing reports.
    Marked { timed_out: bool },
    /// Reported by a Gap Ack Block; the receiver may still withdraw it (RFC 9260 §6.2.1).
    GapAcked,
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
    /// Bytes of user data.
    pub length: usize,
}

impl Outgoing {
    pub fn standing(&self) -> Standing {
        Standing {
            state: self.state,
            path: self.path,
            moved: self.moved,
            sent_at: self.sent_at,
            transmissions: self.transmissions,
            length: self.fragment.user_data.len(),
        }
    }

    /// The chunk as it goes on the wire; its data is lent, which counts no reference.
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
}

/// The ring. Its first element is the TSN after the cumulative point.
#[derive(Debug)]
pub(super) struct Outstanding {
    first: Tsn,
    ring: Queue<Outgoing>,
    marked: usize,
    /// The lowest marked TSN, while any is marked.
    first_marked: Tsn,
}

impl Outstanding {
    pub fn new(initial_tsn: Tsn) -> Self {
        Self {
            first: initial_tsn,
            ring: Queue::default(),
            marked: 0,
            first_marked: initial_tsn,
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

    fn index(&self, tsn: Tsn) -> Option<usize> {
        let distance = tsn.distance_from(self.first) as usize;
        (distance < self.ring.len()).then_some(distance)
    }

    pub fn get(&self, tsn: Tsn) -> Option<&Outgoing> {
        self.index(tsn).map(|index| &self.ring[index])
    }

    pub fn push(&mut self, chunk: Outgoing) {
        self.ring.push_back(chunk);
    }

    /// Takes the chunk after the cumulative point away, if its TSN is not past `up_to`.
    pub fn pop_up_to(&mut self, up_to: Tsn) -> Option<(Tsn, Outgoing)> {
        if !self.first.le(up_to) {
            return None;
        }
        let chunk = self.ring.pop_front()?;
        let tsn = self.first;
        self.first = tsn.next();
        if let ChunkState::Marked { .. } = chunk.state {
            self.unmarked(tsn);
        }
        Some((tsn, chunk))
    }

    /// Puts a chunk in another state and tells which it was in; `None` if the TSN is not in the ring.
    pub fn set_state(&mut self, tsn: Tsn, state: ChunkState) -> Option<ChunkState> {
        let index = self.index(tsn)?;
        let before = std::mem::replace(&mut self.ring[index].state, state);
        let was = matches!(before, ChunkState::Marked { .. });
        let is = matches!(state, ChunkState::Marked { .. });
        if is && !was {
            if self.marked == 0 || tsn.lt(self.first_marked) {
                self.first_marked = tsn;
            }
            self.marked += 1;
        } else if was && !is {
            self.unmarked(tsn);
        }
        Some(before)
    }

    pub fn get_mut(&mut self, tsn: Tsn) -> Option<&mut Outgoing> {
        self.index(tsn).map(|index| &mut self.ring[index])
    }

    /// `tsn` is no longer marked: finds the lowest that still is.
    fn unmarked(&mut self, tsn: Tsn) {
        self.marked -= 1;
        if self.marked > 0 && tsn == self.first_marked {
            self.first_marked = self.next_marked(tsn.next()).unwrap_or(tsn);
        }
    }

    /// The lowest marked TSN from `from` on.
    pub fn next_marked(&self, from: Tsn) -> Option<Tsn> {
        let start = if from.lt(self.first) {
            0
        } else {
            from.distance_from(self.first) as usize
        };
        (start..self.ring.len())
            .find(|index| matches!(self.ring[*index].state, ChunkState::Marked { .. }))
            .map(|index| self.first.add(index as u32))
    }

    /// The lowest marked TSN.
    pub fn first_marked(&self) -> Option<Tsn> {
        (self.marked > 0).then_some(self.first_marked)
    }

    /// The highest TSN sent that does not wait to be sent again.
    pub fn highest_unmarked(&self) -> Option<Tsn> {
        (0..self.ring.len())
            .rev()
            .find(|index| !matches!(self.ring[*index].state, ChunkState::Marked { .. }))
            .map(|index| self.first.add(index as u32))
    }

    /// The lowest TSN last sent on `path` and not acknowledged in any way, looking from `bound` on.
    pub fn earliest_on(&self, path: PathId, bound: Tsn) -> Option<Tsn> {
        let start = if bound.lt(self.first) {
            0
        } else {
            bound.distance_from(self.first) as usize
        };
        (start..self.ring.len())
            .find(|index| {
                self.ring[*index].path == path && self.ring[*index].state != ChunkState::GapAcked
            })
            .map(|index| self.first.add(index as u32))
    }
}

#[cfg(test)]
mod tests {
    use anabranch_wire::serial::Ssn;
    use bytes::Bytes;

    use super::*;

    fn chunk(path: u8) -> Outgoing {
        let user_data = Bytes::from_static(b"x");
        let fragment = Fragment {
            stream: 0,
            ssn: Ssn(0),
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
            missing_reports: 0,
            fast_retransmitted: false,
        }
    }

    #[test]
    fn marks_are_found_lowest_first_across_the_wrap() {
        let start = Tsn(u32::MAX - 2);
        let mut ring = Outstanding::new(start);
        (0..8).for_each(|_| ring.push(chunk(0)));
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

    #[test]
    fn the_earliest_of_each_path_skips_what_gaps_acknowledge() {
        let mut ring = Outstanding::new(Tsn(10));
        [0, 1, 0, 1]
            .into_iter()
            .for_each(|path| ring.push(chunk(path)));
        assert_eq!(ring.earliest_on(PathId(1), Tsn(0)), Some(Tsn(11)));
        ring.set_state(Tsn(11), ChunkState::GapAcked);
        assert_eq!(ring.earliest_on(PathId(1), Tsn(11)), Some(Tsn(13)));
        assert_eq!(ring.earliest_on(PathId(2), Tsn(10)), None);
    }
}
