//! Received TSNs: the cumulative TSN, the gap ack blocks after it, and duplicates (RFC 9260 §3.3.4,
//! §6.7).

use anabranch_wire::Tsn;
use anabranch_wire::chunk::GapAckBlock;

use super::tsn_bitmap::{TsnBitmap, WORDS};
use super::work_counter;
use crate::lazy_box::LazyBox;

/// A gap ack block has offsets of 16 bits, so TSNs further ahead cannot be reported and are not
/// accepted.
const REACH: u32 = u16::MAX as u32;
/// Maximum number of duplicates kept for the next SACK; only the first are reported.
const MAX_DUPLICATES: usize = 64;
/// Pages for every TSN within reach.
const PAGES: usize = (REACH as usize + 1) / (64 * WORDS);

/// Classification of a TSN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// Not received before.
    New,
    /// Received before.
    Duplicate,
    /// Too far past the cumulative TSN to be reported.
    OutOfReach,
}

/// A run of received TSNs, both ends inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TsnRange {
    first: Tsn,
    last: Tsn,
}

/// Whether the TSNs adjacent to a new one have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Neighbours {
    pub before: bool,
    pub after: bool,
}

/// Page, word and bit of a TSN: the lower 16 bits suffice, because no more are within reach.
#[inline]
fn place(tsn: Tsn) -> (usize, usize, u32) {
    let index = usize::from(tsn.0 as u16);
    (
        index / (64 * WORDS),
        index / 64 % WORDS,
        (index % 64) as u32,
    )
}

/// All bits except the lowest `count`, of 64.
#[inline]
fn above(count: usize) -> u64 {
    u64::MAX.checked_shl(count as u32).unwrap_or(0)
}

/// Indexed by page number.
type Pages = [Option<Box<TsnBitmap>>; PAGES];

/// Received TSNs. Those after the cumulative TSN are bits on pages that exist while one of their
/// bits is set. The cost of a chunk should not depend on the order of arrival, and the memory is at
/// most 13 KiB.
#[derive(Debug)]
pub(super) struct TsnTracker {
    cumulative: Tsn,
    highest: Tsn,
    /// Runs after the cumulative TSN.
    runs: usize,
    pages: Option<Box<Pages>>,
    duplicates: LazyBox<Vec<Tsn>>,
}

impl TsnTracker {
    #[inline(always)]
    pub fn new(initial_tsn: Tsn) -> Self {
        Self {
            cumulative: initial_tsn.prev(),
            highest: initial_tsn.prev(),
            runs: 0,
            pages: None,
            duplicates: LazyBox::default(),
        }
    }

    /// The last TSN before the first hole.
    pub fn cumulative(&self) -> Tsn {
        self.cumulative
    }

    /// The highest received TSN.
    pub fn highest(&self) -> Tsn {
        self.highest
    }

    pub fn has_gaps(&self) -> bool {
        self.runs > 0
    }

    pub fn gap_count(&self) -> usize {
        self.runs
    }

    /// A page if it exists.
    #[inline]
    fn page(&self, number: usize) -> Option<&TsnBitmap> {
        self.pages.as_ref()?[number].as_deref()
    }

    /// Whether a TSN after the cumulative TSN, or just beyond reach, has arrived.
    #[inline]
    fn has(&self, tsn: Tsn) -> bool {
        let (page, word, bit) = place(tsn);
        self.page(page)
            .is_some_and(|page| page.words[word] >> bit & 1 == 1)
    }

    /// Classifies `tsn` without accepting it.
    #[inline]
    pub fn classify(&self, tsn: Tsn) -> Arrival {
        match tsn.distance_from(self.cumulative) {
            1 => Arrival::New,
            _ if tsn.le(self.cumulative) => Arrival::Duplicate,
            // The opposite point of the circle is neither before nor after.
            offset if offset > REACH => Arrival::OutOfReach,
            _ if self.runs > 0 && self.has(tsn) => Arrival::Duplicate,
            _ => Arrival::New,
        }
    }

    /// Whether `tsn` [is new](Self::classify), and one before it is missing.
    #[inline]
    pub fn leaves_gap(&self, tsn: Tsn) -> bool {
        tsn != self.cumulative.next() && self.classify(tsn) == Arrival::New
    }

    /// Records a duplicate for the next SACK.
    pub fn note_duplicate(&mut self, tsn: Tsn) {
        if self.duplicates.len() < MAX_DUPLICATES {
            self.duplicates.make().push(tsn);
        }
    }

    /// Accepts a TSN that [`TsnTracker::classify`] found new.
    pub fn insert(&mut self, tsn: Tsn) -> Neighbours {
        if tsn == self.cumulative.next() {
            return self.advance(tsn);
        }
        let beside = self.beside(tsn);
        let (page, word, bit) = place(tsn);
        let pages = self.pages.get_or_insert_default();
        pages[page].get_or_insert_default().set(word, bit);
        self.runs = self.runs + 1 - usize::from(beside.before) - usize::from(beside.after);
        if self.highest.lt(tsn) {
            self.highest = tsn;
        }
        beside
    }

    /// The TSN after the cumulative TSN has arrived; without gaps, all up to `tsn`.
    #[inline]
    pub fn advance(&mut self, tsn: Tsn) -> Neighbours {
        self.cumulative = tsn;
        let after = self.runs > 0 && self.has(tsn.next());
        if after {
            self.cumulative = self.find(tsn.next(), false).prev();
            self.clear(tsn.next(), self.cumulative);
            self.runs -= 1;
        }
        if self.highest.lt(self.cumulative) {
            self.highest = self.cumulative;
        }
        Neighbours {
            before: true,
            after,
        }
    }

    fn beside(&self, tsn: Tsn) -> Neighbours {
        Neighbours {
            before: self.has(tsn.prev()),
            after: self.has(tsn.next()),
        }
    }

    /// Marks all TSNs up to `to`, which must be within reach, as received. Returns false if that
    /// changes nothing or is out of reach.
    pub fn forward(&mut self, to: Tsn) -> bool {
        if self.classify_point(to) != Arrival::New {
            return false;
        }
        while self.runs > 0 {
            let run = self.run_after(self.cumulative);
            if run.first.gt(to.next()) {
                break;
            }
            self.clear(run.first, run.last);
            self.runs -= 1;
            self.cumulative = run.last;
        }
        if self.cumulative.lt(to) {
            self.cumulative = to;
        }
        if self.highest.lt(self.cumulative) {
            self.highest = self.cumulative;
        }
        true
    }

    /// Classifies a new cumulative TSN.
    pub fn classify_point(&self, to: Tsn) -> Arrival {
        if to.le(self.cumulative) {
            return Arrival::Duplicate;
        }
        match to.distance_from(self.cumulative) {
            offset if offset > REACH => Arrival::OutOfReach,
            _ => Arrival::New,
        }
    }

    /// Removes a received TSN after the cumulative TSN; it has to be retransmitted.
    pub fn withdraw(&mut self, tsn: Tsn) {
        let beside = self.beside(tsn);
        self.clear(tsn, tsn);
        self.runs = self.runs + usize::from(beside.before) + usize::from(beside.after) - 1;
        if tsn == self.highest {
            self.highest = if beside.before {
                tsn.prev()
            } else {
                self.last_before(tsn)
            };
        }
    }

    /// The first run after `tsn`; one must exist.
    fn run_after(&self, tsn: Tsn) -> TsnRange {
        let first = self.find(tsn.next(), true);
        TsnRange {
            first,
            last: self.find(first.next(), false).prev(),
        }
    }

    fn clear(&mut self, from: Tsn, to: Tsn) {
        let mut at = from;
        loop {
            let (number, word, bit) = place(at);
            let left = to.distance_from(at) + 1;
            let count = left.min(64 - bit);
            work_counter::count(1);
            let mask = above(bit as usize) & !above((bit + count) as usize);
            if let Some(pages) = &mut self.pages
                && let Some(page) = &mut pages[number]
                && page.clear(word, mask)
            {
                pages[number] = None;
            }
            if count == left {
                return;
            }
            at = at.add(count);
        }
    }

    /// The first TSN from `from` on that has arrived or not. One always exists, because the bit of
    /// the cumulative TSN is never set, and callers that look for a received one know of one.
    #[inline]
    fn find(&self, from: Tsn, arrived: bool) -> Tsn {
        let flip = if arrived { 0 } else { u64::MAX };
        let (mut number, mut word, bit) = place(from);
        let mut mask = above(bit as usize);
        // One round, and the rest of the first page.
        for _ in 0..=PAGES {
            work_counter::count(1);
            match self.page(number) {
                Some(page) => {
                    let bits = (page.words[word] ^ flip) & mask;
                    if bits != 0 {
                        return tsn_at(from, number, word, bits.trailing_zeros());
                    }
                    let words = if arrived { page.some } else { !page.full } & above(word + 1);
                    if words != 0 {
                        let word = words.trailing_zeros() as usize;
                        let bits = page.words[word] ^ flip;
                        return tsn_at(from, number, word, bits.trailing_zeros());
                    }
                }
                None if arrived => {}
                None => return tsn_at(from, number, word, mask.trailing_zeros()),
            }
            (number, word, mask) = ((number + 1) % PAGES, 0, u64::MAX);
        }
        from
    }

    /// The last received TSN before `tsn`.
    fn last_before(&self, tsn: Tsn) -> Tsn {
        if self.runs == 0 {
            return self.cumulative;
        }
        let (mut number, mut word, bit) = place(tsn);
        let mut mask = !above(bit as usize);
        for _ in 0..=PAGES {
            work_counter::count(1);
            if let Some(page) = self.page(number) {
                let bits = page.words[word] & mask;
                let words = page.some & !above(word);
                let found = match (bits, words) {
                    (0, 0) => None,
                    (0, words) => {
                        let word = words.ilog2() as usize;
                        Some((word, page.words[word]))
                    }
                    (bits, _) => Some((word, bits)),
                };
                if let Some((word, bits)) = found {
                    let index = index(number, word, bits.ilog2());
                    let back = (tsn.0 as u16).wrapping_sub(index);
                    return Tsn(tsn.0.wrapping_sub(back.into()));
                }
            }
            (number, word, mask) = ((number + PAGES - 1) % PAGES, WORDS - 1, u64::MAX);
        }
        self.cumulative
    }

    /// The lowest `count` gap ack blocks in order, or all of them.
    #[inline]
    pub fn blocks(&self, count: usize) -> Blocks<'_> {
        let mut blocks = Blocks {
            tracker: self,
            base: self.cumulative,
            word: 0,
            left: self.runs.min(count),
        };
        blocks.go_to(self.cumulative.next());
        blocks
    }

    pub fn duplicates(&self) -> &[Tsn] {
        &self.duplicates
    }

    #[inline]
    pub fn has_duplicates(&self) -> bool {
        self.duplicates.has_any()
    }

    /// The first `count` duplicates have been reported.
    pub fn forget_duplicates(&mut self, count: usize) {
        (self.duplicates).change(|it| drop(it.drain(..count.min(it.len()))));
    }
}

/// The lower 16 bits of the TSN at that position.
#[inline]
fn index(page: usize, word: usize, bit: u32) -> u16 {
    ((page * WORDS + word) * 64) as u16 + bit as u16
}

/// The TSN at that position, `from` or the next after it.
#[inline]
fn tsn_at(from: Tsn, page: usize, word: usize, bit: u32) -> Tsn {
    let forth = index(page, word, bit).wrapping_sub(from.0 as u16);
    from.add(forth.into())
}

/// Gap ack blocks in order. One word of the bitmap after the other is read.
#[derive(Clone, Debug)]
pub(super) struct Blocks<'a> {
    tracker: &'a TsnTracker,
    /// The TSN of the lowest bit of the current word, and its bits that were not read.
    base: Tsn,
    word: u64,
    left: usize,
}

impl Blocks<'_> {
    /// Continues with `tsn`.
    fn go_to(&mut self, tsn: Tsn) {
        let (page, word, bit) = place(tsn);
        let page = self.tracker.page(page);
        self.base = Tsn(tsn.0 & !63);
        self.word = page.map_or(0, |page| page.words[word]) & above(bit as usize);
    }

    fn offset(&self, tsn: Tsn) -> u16 {
        tsn.distance_from(self.tracker.cumulative) as u16
    }
}

impl Iterator for Blocks<'_> {
    type Item = GapAckBlock;

    #[inline]
    fn next(&mut self) -> Option<GapAckBlock> {
        self.left = self.left.checked_sub(1)?;
        if self.word == 0 {
            self.go_to(self.tracker.find(self.base.add(64), true));
        }
        let bit = self.word.trailing_zeros();
        let end = bit + (self.word >> bit).trailing_ones();
        let first = self.base.add(bit);
        let mut last = self.base.add(end - 1);
        self.word &= above(end as usize);
        if end == 64 {
            let missing = self.tracker.find(self.base.add(64), false);
            last = missing.prev();
            self.go_to(missing);
        }
        Some(GapAckBlock {
            start: self.offset(first),
            end: self.offset(last),
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Blocks<'_> {}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::test_rng::test_rng;
    use crate::work;

    fn pairs(tracker: &TsnTracker) -> Vec<(u16, u16)> {
        tracker
            .blocks(usize::MAX)
            .map(|block| (block.start, block.end))
            .collect()
    }

    /// RFC 9260 §3.3.4: 10..=12, 14, 15, 17 have arrived: cumulative 12, blocks 2-3 and 5-5.
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

    /// Compares with a set across the wrap, in an order shuffled by a small generator.
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

    /// Thousands of runs, joined, split and passed at random: the blocks must match a set for any
    /// number requested.
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
                let mut expected: Vec<(u16, u16)> = Vec::new();
                for offset in set.iter().map(|offset| (offset - cumulative + 1) as u16) {
                    match expected.last_mut() {
                        Some((_, end)) if *end + 1 == offset => *end = offset,
                        _ => expected.push((offset, offset)),
                    }
                }
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

    /// Moves the cumulative TSN by one at a time below 600 distant runs: this should cost as little
    /// as without them.
    #[test]
    fn a_point_that_passes_no_run_costs_nothing_for_those_that_wait() {
        let mut tracker = TsnTracker::new(Tsn(1));
        for at in 0..600 {
            tracker.insert(Tsn(20_000 + 60 * at));
        }
        work::take();
        for tsn in 1..2_000 {
            assert!(tracker.forward(Tsn(tsn)));
            let steps = work::take();
            assert!(steps < 8, "TSN {tsn}: {steps} steps");
        }
        assert_eq!(tracker.blocks(usize::MAX).len(), 600);
    }

    /// Moves the cumulative TSN at random over hundreds of runs and compares the reported runs with
    /// a set.
    #[test]
    fn what_is_left_behind_a_point_is_what_a_set_says() {
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
                let mut expected: Vec<(u16, u16)> = Vec::new();
                for offset in set.iter().map(|offset| (offset - cumulative + 1) as u16) {
                    match expected.last_mut() {
                        Some((_, end)) if *end + 1 == offset => *end = offset,
                        _ => expected.push((offset, offset)),
                    }
                }
                let blocks = tracker.blocks(usize::MAX);
                let blocks: Vec<_> = blocks.map(|it| (it.start, it.end)).collect();
                assert_eq!(blocks, expected, "seed {seed}, turn {turn}");
            }
        }
    }
}
