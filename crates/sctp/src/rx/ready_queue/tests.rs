//! Comparison of the ready queue with a simple implementation that scans all entries.

use anabranch_wire::{Ssn, Tsn};
use bytes::Bytes;

use super::*;
use crate::test_rng::test_rng;

const STREAMS: u32 = 5;

fn readable(stream: u16, begins: bool, ends: bool, text: String) -> Deliverable {
    let part = ReceivedPart {
        stream,
        ppid: 0,
        unordered: false,
        ssn: Ssn(0),
        tsn: Tsn(0),
        begins,
        ends,
        payload: MessageBytes::One(Bytes::from(text)),
    };
    Deliverable {
        bytes: part.payload.len() as u64,
        preceding: 0,
        part,
        compact: true,
    }
}

/// Entry as seen by the user: stream, flags, bytes counted in the window, and user data.
fn told(it: Deliverable) -> (u16, bool, bool, u64, Bytes) {
    let part = it.part;
    let data = part.payload.into_bytes();
    (part.stream, part.begins, part.ends, it.bytes, data)
}

/// Simple implementation of the ready queue, which scans all entries.
#[derive(Default)]
struct Walked(VecDeque<Deliverable>);

impl Walked {
    fn forget(&mut self, stream: u16) -> (bool, Vec<Deliverable>) {
        let (mut found, mut taken) = (false, Vec::new());
        for place in (0..self.0.len()).rev() {
            let part = &self.0[place].part;
            if part.stream != stream {
                continue;
            }
            if part.ends {
                break;
            }
            let begins = part.begins;
            taken.extend(self.0.remove(place));
            if begins {
                found = true;
                break;
            }
        }
        taken.reverse();
        (found, taken)
    }

    fn take_on(&mut self, stream: u16) -> Option<Deliverable> {
        let place = self.0.iter().position(|it| it.part.stream == stream)?;
        self.0.remove(place)
    }
}

#[test]
fn the_ready_queue_equals_a_plain_queue() {
    let (mut forgotten, mut most_empty) = (0, 0);
    for seed in 1..=400_u64 {
        let mut random = test_rng(seed);
        let (mut unread, mut walked) = (ReadyQueue::default(), Walked::default());
        let mut delivered = u64::from(random(3));
        let mut open = [false; STREAMS as usize];
        let (reads, forgets) = (random(30), random(4));
        for turn in 0..600 {
            let stream = random(STREAMS) as u16;
            let is_open = &mut open[usize::from(stream)];
            let text = || format!("{seed} {turn};");
            let choice = random(100);
            if choice < reads {
                let taken = unread.take_first().map(told);
                assert_eq!(taken, walked.0.pop_front().map(told), "seed {seed}, {turn}");
            } else if choice < reads + 3 {
                let taken = unread.take_first_on(stream, delivered).map(told);
                assert_eq!(
                    taken,
                    walked.take_on(stream).map(told),
                    "seed {seed}, {turn}"
                );
            } else if choice < reads + 3 + forgets && *is_open {
                let mut taken = Vec::new();
                let begins = unread.forget(stream, delivered, |it| taken.push(told(it)));
                unread.tidy(delivered);
                let (found, walked) = walked.forget(stream);
                let walked: Vec<_> = walked.into_iter().map(told).collect();
                assert_eq!(taken, walked, "seed {seed}, {turn}");
                assert_eq!(begins, found, "seed {seed}, {turn}");
                assert!(unread.empty() <= MAX_EMPTY_SLOTS.max(unread.len() / SOME));
                forgotten += taken.len();
                *is_open = false;
            } else {
                // Adds either a complete message, or the first, a middle or the last part of one.
                let begins = !*is_open;
                let ends = if begins {
                    random(4) > 0
                } else {
                    random(8) == 0
                };
                delivered += u64::from(ends);
                *is_open = !ends;
                let [one, other] = [0, 1].map(|_| readable(stream, begins, ends, text()));
                walked.0.push_back(other);
                if begins && ends {
                    unread.push_back(one);
                } else {
                    unread.push_part(one, delivered);
                }
            }
            assert_eq!(unread.is_empty(), walked.0.is_empty(), "seed {seed}");
            assert_eq!(unread.len() - unread.empty(), walked.0.len());
            assert!(!unread.back().is_some_and(Deliverable::is_nothing));
            most_empty = most_empty.max(unread.empty());
        }
        let taken = std::iter::from_fn(|| unread.take_first());
        assert!(taken.map(told).eq(walked.0.into_iter().map(told)), "{seed}");
    }
    assert!(
        forgotten > 2_000 && most_empty > MAX_EMPTY_SLOTS,
        "{forgotten} {most_empty}"
    );
}

/// A merged last part adds a message but no slot.
#[test]
fn an_end_that_is_taken_in_moves_no_place() {
    let mut unread = ReadyQueue::default();
    unread.push_part(readable(1, true, false, "a".into()), 0);
    unread.push_part(readable(2, true, false, "b".into()), 0);
    // The last part of the second message arrived and was merged.
    unread.back_mut().expect("it is there").part.ends = true;
    unread.took_in(2, true);
    unread.push_part(readable(1, false, false, "c".into()), 1);
    let mut taken = Vec::new();
    assert!(unread.forget(1, 1, |it| taken.push(told(it).4)));
    unread.tidy(1);
    assert_eq!(taken, ["a", "c"]);
    assert_eq!(unread.take_first().map(|it| told(it).4), Some("b".into()));
    assert!(unread.is_empty() && unread.places.is_none());
}

/// Neither waiting entries nor entries that are read should add to the cost of `forget`.
#[test]
fn forgetting_costs_what_is_forgotten() {
    let mut unread = ReadyQueue::default();
    for at in 0..10_000 {
        unread.push_back(readable(3, true, true, format!("{at}")));
    }
    for at in 0..10 {
        unread.push_part(readable(1, at == 0, false, "x".into()), 10_000 + at);
        unread.push_back(readable(3, true, true, "between".into()));
    }
    work_counter::take();
    unread.forget(1, 10_010, drop);
    unread.tidy(10_010);
    assert_eq!((work_counter::take(), unread.empty()), (10, 10));
}
