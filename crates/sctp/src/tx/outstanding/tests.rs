//! Comparison of the ring and its bit sets with a scan of all chunks.

use std::collections::BTreeSet;

use anabranch_wire::serial::{Fsn, Mid, Ssn};
use bytes::Bytes;

use super::*;

fn chunk(path: u8) -> OutstandingChunk {
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
        context: 0,
        user_data,
    };
    OutstandingChunk {
        fragment,
        state: ChunkState::InFlight,
        path: PathId(path),
        moved: false,
        sent_at: 0,
        transmissions: 1,
        begins_packet: true,
        missing_reports: 0,
        fast_retransmitted: false,
        reported: false,
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

/// Compares the bit sets and counters with a scan of all chunks, after each of many random steps.
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
    let mut judged = BTreeSet::new();
    for round in 0..20_000 {
        let len = ring.len();
        let any = ring.first.add(draw(len.max(1)) as u32);
        if draw(8) == 0 && len > 0 {
            let counts = draw(2) == 0;
            ring.set_reportable(any, counts);
            if counts {
                judged.remove(&any.0);
            } else {
                judged.insert(any.0);
            }
        }
        match draw(8) {
            0..=2 if len < 900 => {
                ring.push(chunk(draw(3) as u8));
            }
            3 if round % 500 < 50 => {
                ring.pop_up_to(ring.first.add(2));
            }
            // From time to time all chunks are in flight on one path, and are acknowledged
            // together.
            3 if round % 1000 == 999 || len > 800 => {
                let begin = ring.first;
                for tsn in (0..len as u32).map(|offset| begin.add(offset)) {
                    ring.set_state(tsn, ChunkState::InFlight);
                    ring.move_to(tsn, PathId(0));
                }
                let (mut next, count) = (ring.first, draw(len + 1));
                ring.pop_in_flight(count as u32, |tsn, _| {
                    assert_eq!(tsn, next);
                    next = tsn.next();
                });
                assert_eq!((ring.first, ring.len()), (next, len - count));
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
        let all = || (0..ring.len()).map(|index| (ring.first.add(index as u32), &ring.ring[index]));
        judged.retain(|&tsn| ring.index(Tsn(tsn)).is_some());
        assert_eq!(ring.judged as usize, judged.len(), "round {round}");
        let counting = all().find(|(tsn, _)| !judged.contains(&tsn.0));
        assert_eq!(
            ring.next_reportable(ring.first, ring.next_tsn()),
            counting.map(|(tsn, _)| tsn)
        );
        let marked = |it: &OutstandingChunk| matches!(it.state, ChunkState::Marked { .. });
        let first = |wanted: &dyn Fn(&OutstandingChunk) -> bool| {
            all().find(|(_, it)| wanted(it)).map(|(tsn, _)| tsn)
        };
        assert_eq!(ring.first_marked(), first(&marked), "round {round}");
        let unmarked = all().rfind(|(_, it)| !marked(it));
        assert_eq!(ring.highest_unmarked(), unmarked.map(|(tsn, _)| tsn));
        let gap_acked = |it: &OutstandingChunk| it.state == ChunkState::GapAcked;
        assert_eq!(
            ring.gap_acked(),
            all().filter(|(_, it)| gap_acked(it)).count()
        );
        let (begin, end) = (ring.first, ring.next_tsn());
        assert_eq!(ring.next_gap_acked(begin, end), first(&gap_acked));
        assert_eq!(ring.next_unacked(begin, end), first(&|it| !gap_acked(it)));
        for path in (0..3).map(PathId) {
            let on = |it: &OutstandingChunk| it.path == path && !gap_acked(it);
            assert_eq!(ring.earliest_on(path, begin), first(&on), "round {round}");
            let marked_on = |it: &OutstandingChunk| on(it) && marked(it);
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
