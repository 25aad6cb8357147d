//! Comparison of the TSN tracker with sets.

use std::collections::BTreeSet;

use super::*;
use crate::test_rng::test_rng;

fn pairs(tracker: &TsnTracker) -> Vec<(u16, u16)> {
    tracker
        .blocks(usize::MAX)
        .map(|block| (block.start, block.end))
        .collect()
}

/// Contiguous ranges of a set, as offsets from the cumulative TSN, which is the TSN before `next`.
fn runs_of(set: &BTreeSet<u32>, next: u32) -> Vec<(u16, u16)> {
    let mut runs: Vec<(u16, u16)> = Vec::new();
    for offset in set.iter().map(|index| (index - next + 1) as u16) {
        match runs.last_mut() {
            Some((_, end)) if *end + 1 == offset => *end = offset,
            _ => runs.push((offset, offset)),
        }
    }
    runs
}

/// Example of RFC 9260 §3.3.4: 10..=12, 14, 15, 17 have arrived: cumulative 12, blocks 2-3 and 5-5.
#[test]
fn the_example_of_the_text() {
    let mut tracker = TsnTracker::new(Tsn(10));
    for tsn in [10, 17, 12, 14, 11, 15] {
        assert_eq!(tracker.classify(Tsn(tsn)), Arrival::New);
        tracker.insert(Tsn(tsn));
    }
    assert_eq!(
        (tracker.cumulative(), pairs(&tracker)),
        (Tsn(12), vec![(2, 3), (5, 5)])
    );
    assert_eq!(tracker.classify(Tsn(14)), Arrival::Duplicate);
    assert_eq!(tracker.classify(Tsn(9)), Arrival::Duplicate);
    tracker.insert(Tsn(16));
    assert_eq!(pairs(&tracker), [(2, 5)]);
    tracker.insert(Tsn(13));
    assert_eq!(
        (tracker.cumulative(), tracker.has_gaps(), tracker.highest()),
        (Tsn(17), false, Tsn(17))
    );
}

#[test]
fn nothing_out_of_reach_is_taken_and_duplicates_are_bounded() {
    let mut tracker = TsnTracker::new(Tsn(0));
    assert_eq!(tracker.classify(Tsn(65_534)), Arrival::New);
    assert_eq!(tracker.classify(Tsn(65_535)), Arrival::OutOfReach);
    assert_eq!(
        tracker.classify(Tsn(0x7FFF_FFFF)),
        Arrival::OutOfReach,
        "opposite on the circle"
    );
    assert_eq!(
        tracker.classify(Tsn(0x8000_0000)),
        Arrival::Duplicate,
        "before it"
    );
    (0..1000).for_each(|tsn| tracker.note_duplicate(Tsn(tsn)));
    assert_eq!(tracker.duplicates().len(), MAX_DUPLICATES);
    tracker.forget_duplicates(60);
    assert_eq!(tracker.duplicates(), [60, 61, 62, 63].map(Tsn));
}

/// Compares with a set while TSNs wrap around, in a shuffled order.
#[test]
fn agrees_with_a_set_across_the_wrap() {
    for seed in 1..40u64 {
        let start = Tsn(u32::MAX - 50);
        let (mut tracker, mut set) = (TsnTracker::new(start), BTreeSet::new());
        let mut state = seed;
        for _ in 0..300 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let offset = (state >> 33) as u32 % 120;
            let tsn = start.add(offset);
            let new = set.insert(offset);
            assert_eq!(tracker.classify(tsn) == Arrival::New, new, "seed {seed}");
            if new {
                tracker.insert(tsn);
            }
            let cumulative = (0..).find(|offset| !set.contains(offset)).unwrap_or(0);
            assert_eq!(
                tracker.cumulative(),
                start.add(cumulative).prev(),
                "seed {seed}"
            );
            let reported: BTreeSet<u32> = tracker
                .blocks(usize::MAX)
                .flat_map(|block| u32::from(block.start)..=u32::from(block.end))
                .map(|offset| offset + cumulative - 1)
                .collect();
            let expected: BTreeSet<u32> = set.range(cumulative..).copied().collect();
            assert_eq!(reported, expected, "seed {seed}");
        }
    }
}

/// Thousands of ranges are joined, split and passed at random. For any number of requested blocks,
/// the result must match a set.
#[test]
fn the_lowest_blocks_are_those_of_a_set() {
    for seed in 1..6u64 {
        let start = Tsn(u32::MAX - 3_000);
        let (mut tracker, mut set) = (TsnTracker::new(start), BTreeSet::new());
        let mut random = test_rng(seed);
        let mut most = 0;
        for turn in 0..12_000 {
            let cumulative = tracker.cumulative().next().distance_from(start);
            let offset = match turn % 8 {
                7 => cumulative,
                6 => cumulative + random(60),
                _ => cumulative + 2 + random(5_000),
            };
            if set.insert(offset) {
                tracker.insert(start.add(offset));
            } else if turn % 4 == 1 && offset > cumulative {
                set.remove(&offset);
                tracker.withdraw(start.add(offset));
            }
            let cumulative = tracker.cumulative().next().distance_from(start);
            assert!(!set.contains(&cumulative), "seed {seed}, turn {turn}");
            set.retain(|&offset| offset > cumulative);
            most = most.max(tracker.gap_count());
            if turn % 10 != 0 {
                continue;
            }
            let expected = runs_of(&set, cumulative);
            assert_eq!(pairs(&tracker), expected, "seed {seed}, turn {turn}");
            for count in [0, 1, 300, 900] {
                let mut named = Vec::new();
                let blocks = tracker.blocks(count);
                assert_eq!(blocks.len(), count.min(expected.len()));
                for block in blocks {
                    named.push((block.start, block.end));
                }
                assert_eq!(named, expected[..count.min(expected.len())], "seed {seed}");
            }
        }
        assert!(most > 800, "seed {seed}: {most} runs");
    }
}

/// The cumulative TSN advances one by one below 600 distant ranges. The search for the first range
/// must take at most one round over the pages.
#[test]
fn a_point_that_passes_no_run_costs_one_round_of_the_pages_at_most() {
    let mut tracker = TsnTracker::new(Tsn(1));
    for at in 0..600 {
        tracker.insert(Tsn(60_000 + 9 * at));
    }
    work_counter::take();
    for tsn in 1..2_000 {
        assert!(tracker.forward(Tsn(tsn)));
        let steps = work_counter::take();
        assert!((1..=18).contains(&steps), "TSN {tsn}: {steps} steps");
    }
    assert_eq!(tracker.blocks(usize::MAX).len(), 600);
}

/// Moves the cumulative TSN at random over hundreds of ranges, and compares the reported ranges
/// with a set.
#[test]
fn runs_above_the_cumulative_tsn_equal_those_of_a_set() {
    for seed in 1..20_u64 {
        let start = Tsn(u32::MAX - 2_000);
        let (mut tracker, mut set) = (TsnTracker::new(start), BTreeSet::new());
        let mut random = test_rng(seed);
        for turn in 0..3_000 {
            let next = tracker.cumulative().next().distance_from(start);
            if turn % 16 == 0 {
                let to = next + random(if turn % 64 == 0 { 2_000 } else { 20 });
                assert!(tracker.forward(start.add(to)));
                set.extend(next..=to);
            } else {
                let offset = next + 1 + random(4_000);
                if set.insert(offset) {
                    tracker.insert(start.add(offset));
                }
            }
            let mut cumulative = next;
            while set.remove(&cumulative) {
                cumulative += 1;
            }
            set = set.split_off(&cumulative);
            assert_eq!(tracker.cumulative().next(), start.add(cumulative));
            let expected = runs_of(&set, cumulative);
            let blocks = tracker.blocks(usize::MAX);
            let blocks: Vec<_> = blocks.map(|it| (it.start, it.end)).collect();
            assert_eq!(blocks, expected, "seed {seed}, turn {turn}");
        }
    }
}

/// The pages form a ring. Random ranges fill it from the second TSN after the cumulative TSN to the
/// last TSN within reach.
#[test]
fn the_ring_agrees_with_a_set_over_its_whole_reach() {
    for seed in 1..=24_u64 {
        let mut random = test_rng(seed);
        let start = Tsn(random(u32::MAX));
        let (mut tracker, mut set) = (TsnTracker::new(start), BTreeSet::new());
        for turn in 0..80 {
            let at = format!("seed {seed}, turn {turn}");
            let mut next = tracker.cumulative().next().distance_from(start);
            let longest = [1, 3, 64, 200, 5_000, 65_534][random(6) as usize];
            let count = 1 + random(longest);
            // Offsets are relative to the cumulative TSN, which is the TSN before `next`.
            let first = match random(4) {
                0 => 2,
                1 => REACH + 1 - count,
                _ => (2 + random(REACH - 1)).min(REACH + 1 - count),
            };
            let run = (first.max(2)..first + count).map(|offset| next + offset - 1);
            match random(10) {
                0 => {
                    let to = next + random(if turn % 4 == 0 { REACH } else { 3_000 });
                    assert!(tracker.forward(start.add(to)), "{at}");
                    set.extend(next..=to);
                }
                1 | 2 => {
                    set.insert(next);
                    tracker.insert(start.add(next));
                }
                3 | 4 => {
                    for index in run.filter(|it| set.remove(it)) {
                        tracker.withdraw(start.add(index));
                    }
                }
                kind => {
                    let mut run: Vec<u32> = run.collect();
                    if kind == 5 {
                        run.reverse();
                    }
                    for index in run {
                        let new = set.insert(index);
                        assert_eq!(
                            tracker.classify(start.add(index)) == Arrival::New,
                            new,
                            "{at}"
                        );
                        if new {
                            tracker.insert(start.add(index));
                        }
                    }
                }
            }
            while set.remove(&next) {
                next += 1;
            }
            set = set.split_off(&next);
            let cumulative = start.add(next).prev();
            assert_eq!(tracker.cumulative(), cumulative, "{at}");
            let highest = set.last().map_or(cumulative, |&it| start.add(it));
            assert_eq!(tracker.highest(), highest, "{at}");
            let expected = runs_of(&set, next);
            assert_eq!(tracker.gap_count(), expected.len(), "{at}");
            assert_eq!(pairs(&tracker), expected, "{at}");
            for _ in 0..50 {
                let offset = 2 + random(REACH - 1);
                let arrival = match set.contains(&(next + offset - 1)) {
                    true => Arrival::Duplicate,
                    false => Arrival::New,
                };
                assert_eq!(tracker.classify(cumulative.add(offset)), arrival, "{at}");
            }
            let beyond = tracker.classify(cumulative.add(REACH + 1));
            assert_eq!(beyond, Arrival::OutOfReach, "{at}");
            let mut pages = tracker.pages.iter().flat_map(|it| it.iter()).flatten();
            assert!(pages.all(|it| it.some != 0), "{at}: an empty page");
        }
    }
}
