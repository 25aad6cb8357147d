//! Which TSNs have arrived: the cumulative point, the gap blocks past it, the duplicates (RFC 9260 §3.3.4, §6.7).

use anabranch_wire::Tsn;
use anabranch_wire::chunk::GapAckBlock;

use super::steps;

/// A Gap Ack Block names a TSN by 16 bits of offset, so nothing further on can be reported, and nothing is taken.
const REACH: u32 = u16::MAX as u32;
/// Duplicates kept for the next SACK; a peer that repeats more is told of the first.
const MOST_DUPLICATES: usize = 64;
/// Words of a page, and pages that cover every TSN within reach.
const WORDS: usize = 64;
const PAGES: usize = (REACH as usize + 1) / (64 * WORDS);

/// What a TSN is to the tracker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// Not seen before.
    New,
    /// Received already.
    Duplicate,
    /// Too far past the cumulative point to be reported.
    OutOfReach,
}

/// 4,096 TSNs, a bit each.
#[derive(Debug)]
struct Page {
    words: [u64; WORDS],
    /// Words with a bit set, and words with no bit clear.
    some: u64,
    full: u64,
}

impl Page {
    fn set(&mut self, word: usize, bit: u32) {
        self.words[word] |= 1 << bit;
        self.some |= 1 << word;
        if self.words[word] == u64::MAX {
            self.full |= 1 << word;
        }
    }

    /// Clears the bits of `mask`; whether the page is empty now.
    fn clear(&mut self, word: usize, mask: u64) -> bool {
        self.words[word] &= !mask;
        self.full &= !(1 << word);
        if self.words[word] == 0 {
            self.some &= !(1 << word);
        }
        self.some == 0
    }
}

/// Page, word and bit of a TSN: the lower 16 bits are enough, since no more are within reach.
#[inline]
fn place(tsn: Tsn) -> (usize, usize, u32) {
    let index = usize::from(tsn.0 as u16);
    (
        index / (64 * WORDS),
        index / 64 % WORDS,
        (index % 64) as u32,
    )
}

/// The bits above the lowest `count`, of 64.
#[inline]
fn above(count: usize) -> u64 {
    u64::MAX.checked_shl(count as u32).unwrap_or(0)
}

/// TSNs received. What is past the cumulative point is kept as bits, on pages that are there while one of theirs is set: no
/// order of arrival makes a chunk cost more than another, and no peer makes it more than 9 KiB.
#[derive(Debug)]
pub(super) struct TsnTracker {
    cumulative: Tsn,
    highest: Tsn,
    /// Runs past the cumulative point.
    runs: usize,
    pages: [Option<Box<Page>>; PAGES],
    duplicates: Vec<Tsn>,
}

impl TsnTracker {
    pub fn new(initial_tsn: Tsn) -> Self {
        Self {
            cumulative: initial_tsn.prev(),
            highest: initial_tsn.prev(),
            runs: 0,
            pages: Default::default(),
            duplicates: Vec::new(),
        }
    }

    /// The last TSN received before the first hole.
    pub fn cumulative(&self) -> Tsn {
        self.cumulative
    }

    /// The highest TSN received.
    pub fn highest(&self) -> Tsn {
        self.highest
    }

    pub fn has_gaps(&self) -> bool {
        self.runs > 0
    }

    pub fn gap_count(&self) -> usize {
        self.runs
    }

    /// Whether a TSN past the cumulative point, or just beyond reach, has arrived.
    #[inline]
    fn has(&self, tsn: Tsn) -> bool {
        let (page, word, bit) = place(tsn);
        self.pages[page]
            .as_ref()
            .is_some_and(|page| page.words[word] >> bit & 1 == 1)
    }

    /// What `tsn` would be, without taking it.
    pub fn classify(&self, tsn: Tsn) -> Arrival {
        if tsn.le(self.cumulative) {
            return Arrival::Duplicate;
        }
        match tsn.distance_from(self.cumulative) {
            // The very opposite of the circle is neither before nor after.
            offset if offset > REACH => Arrival::OutOfReach,
            _ if self.runs > 0 && self.has(tsn) => Arrival::Duplicate,
            _ => Arrival::New,
        }
    }

    /// Notes a duplicate for the next SACK.
    pub fn note_duplicate(&mut self, tsn: Tsn) {
        if self.duplicates.len() < MOST_DUPLICATES {
            self.duplicates.push(tsn);
        }
    }

    /// Takes a TSN that [`TsnTracker::classify`] called new.
    pub fn insert(&mut self, tsn: Tsn) {
        if tsn == self.cumulative.next() {
            self.cumulative = tsn;
            if self.runs > 0 && self.has(tsn.next()) {
                self.cumulative = self.find(tsn.next(), false).prev();
                self.clear(tsn.next(), self.cumulative);
                self.runs -= 1;
            }
            if self.highest.lt(self.cumulative) {
                self.highest = self.cumulative;
            }
            return;
        }
        let joined = usize::from(self.has(tsn.prev())) + usize::from(self.has(tsn.next()));
        let (page, word, bit) = place(tsn);
        let fresh = || {
            Box::new(Page {
                words: [0; WORDS],
                some: 0,
                full: 0,
            })
        };
        self.pages[page].get_or_insert_with(fresh).set(word, bit);
        self.runs = self.runs + 1 - joined;
        if self.highest.lt(tsn) {
            self.highest = tsn;
        }
    }

    /// A TSN past the cumulative point that has arrived is dropped again, and will have to come once more.
    pub fn withdraw(&mut self, tsn: Tsn) {
        let before = self.has(tsn.prev());
        let joined = usize::from(before) + usize::from(self.has(tsn.next()));
        self.clear(tsn, tsn);
        self.runs = self.runs + joined - 1;
        if tsn == self.highest {
            self.highest = if before {
                tsn.prev()
            } else {
                self.last_before(tsn)
            };
        }
    }

    fn clear(&mut self, from: Tsn, to: Tsn) {
        let mut at = from;
        loop {
            let (number, word, bit) = place(at);
            let left = to.distance_from(at) + 1;
            let count = left.min(64 - bit);
            steps::count(1);
            let mask = above(bit as usize) & !above((bit + count) as usize);
            if self.pages[number]
                .as_mut()
                .is_some_and(|page| page.clear(word, mask))
            {
                self.pages[number] = None;
            }
            if count == left {
                return;
            }
            at = at.add(count);
        }
    }

    /// The first TSN at `from` or after it that has arrived, or that has not: there always is one, since the cumulative
    /// one's bit is never set, and who asks for one that has arrived knows of one.
    #[inline]
    fn find(&self, from: Tsn, arrived: bool) -> Tsn {
        let flip = if arrived { 0 } else { u64::MAX };
        let (mut number, mut word, bit) = place(from);
        let mut mask = above(bit as usize);
        // Once round, and what is left of the first page.
        for _ in 0..=PAGES {
            steps::count(1);
            match &self.pages[number] {
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

    /// The last TSN before `tsn` that has arrived.
    fn last_before(&self, tsn: Tsn) -> Tsn {
        if self.runs == 0 {
            return self.cumulative;
        }
        let (mut number, mut word, bit) = place(tsn);
        let mut mask = !above(bit as usize);
        for _ in 0..=PAGES {
            steps::count(1);
            if let Some(page) = &self.pages[number] {
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

    /// The gap blocks, lowest first.
    pub fn blocks(&self) -> Blocks<'_> {
        Blocks {
            tracker: self,
            after: self.cumulative,
            left: self.runs,
        }
    }

    pub fn duplicates(&self) -> &[Tsn] {
        &self.duplicates
    }

    /// The first `count` duplicates have been reported.
    pub fn forget_duplicates(&mut self, count: usize) {
        self.duplicates.drain(..count.min(self.duplicates.len()));
    }
}

/// The lower 16 bits of the TSN in that place.
#[inline]
fn index(page: usize, word: usize, bit: u32) -> u16 {
    ((page * WORDS + word) * 64) as u16 + bit as u16
}

/// The TSN in that place that is `from` or the next after it.
#[inline]
fn tsn_at(from: Tsn, page: usize, word: usize, bit: u32) -> Tsn {
    let forth = index(page, word, bit).wrapping_sub(from.0 as u16);
    from.add(forth.into())
}

/// Gap Ack Blocks as they are read from the bits: who takes few of many pays for few.
#[derive(Clone, Debug)]
pub(super) struct Blocks<'a> {
    tracker: &'a TsnTracker,
    /// What was before is given.
    after: Tsn,
    left: usize,
}

impl Iterator for Blocks<'_> {
    type Item = GapAckBlock;

    #[inline]
    fn next(&mut self) -> Option<GapAckBlock> {
        self.left = self.left.checked_sub(1)?;
        let first = self.tracker.find(self.after.next(), true);
        let missing = self.tracker.find(first.next(), false);
        self.after = missing;
        let offset = |tsn: Tsn| tsn.distance_from(self.tracker.cumulative) as u16;
        Some(GapAckBlock {
            start: offset(first),
            end: offset(missing.prev()),
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

    fn pairs(tracker: &TsnTracker) -> Vec<(u16, u16)> {
        tracker
            .blocks()
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
        assert_eq!(tracker.duplicates().len(), MOST_DUPLICATES);
        tracker.forget_duplicates(60);
        assert_eq!(tracker.duplicates(), [60, 61, 62, 63].map(Tsn));
    }

    /// Against a set, across the wrap, in an order that a small generator shuffles.
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
                    .blocks()
                    .flat_map(|block| u32::from(block.start)..=u32::from(block.end))
                    .map(|offset| offset + cumulative - 1)
                    .collect();
                let expected: BTreeSet<u32> = set.range(cumulative..).copied().collect();
                assert_eq!(reported, expected, "seed {seed}");
            }
        }
    }
}
