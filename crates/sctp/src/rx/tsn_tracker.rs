//! Tracking of received TSNs: cumulative TSN, Gap Ack Blocks, and duplicates (RFC 9260 §3.3.4,
//! §6.7).

use anabranch_wire::Tsn;
use anabranch_wire::chunk::GapAckBlock;

use super::tsn_bitmap::{TsnBitmap, WORDS};
use crate::lazy_box::LazyBox;
use crate::work_counter;

/// Maximum distance of a TSN from the cumulative TSN. Gap Ack Blocks have 16-bit offsets, so TSNs
/// further ahead could not be reported and are not accepted.
const REACH: u32 = u16::MAX as u32;
/// Maximum number of duplicates stored for the next SACK; further duplicates are not reported.
const MAX_DUPLICATES: usize = 64;
/// Number of pages for all TSNs within reach.
const PAGES: usize = (REACH as usize + 1) / (64 * WORDS);

/// Classification of a TSN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// The TSN was not received before.
    New,
    /// The TSN was received before.
    Duplicate,
    /// The TSN is too far above the cumulative TSN to be reported.
    OutOfReach,
}

/// Contiguous range of received TSNs, both ends inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TsnRange {
    first: Tsn,
    last: Tsn,
}

/// Whether the TSNs directly before and after a new TSN have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Neighbours {
    pub before: bool,
    pub after: bool,
}

/// Page, word and bit of a TSN. Its lower 16 bits are sufficient, because only 2^16 TSNs are within
/// reach.
#[inline]
fn place(tsn: Tsn) -> (usize, usize, u32) {
    let index = usize::from(tsn.0 as u16);
    (
        index / (64 * WORDS),
        index / 64 % WORDS,
        (index % 64) as u32,
    )
}

/// Mask of all 64 bits except the lowest `count`.
#[inline]
fn above(count: usize) -> u64 {
    u64::MAX.checked_shl(count as u32).unwrap_or(0)
}

/// Pages by page number.
type TsnBitmaps = [Option<Box<TsnBitmap>>; PAGES];

/// Set of received TSNs. TSNs above the cumulative TSN are bits in pages; a page exists while one
/// of its bits is set. The cost of a chunk does not depend on the order of arrival, and the memory
/// is at most 13 KiB.
#[derive(Debug)]
pub(super) struct TsnTracker {
    cumulative: Tsn,
    highest: Tsn,
    /// Number of contiguous ranges above the cumulative TSN.
    runs: usize,
    pages: Option<Box<TsnBitmaps>>,
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

    /// Cumulative TSN: the last TSN before the first missing one.
    pub fn cumulative(&self) -> Tsn {
        self.cumulative
    }

    /// Highest received TSN.
    pub fn highest(&self) -> Tsn {
        self.highest
    }

    pub fn has_gaps(&self) -> bool {
        self.runs > 0
    }

    pub fn gap_count(&self) -> usize {
        self.runs
    }

    /// Page with this number, if it exists.
    #[inline]
    fn bitmap(&self, number: usize) -> Option<&TsnBitmap> {
        self.pages.as_ref()?[number].as_deref()
    }

    /// Whether `tsn` has arrived; it must be above the cumulative TSN, and at most one beyond
    /// reach.
    #[inline]
    fn has(&self, tsn: Tsn) -> bool {
        let (page, word, bit) = place(tsn);
        self.bitmap(page)
            .is_some_and(|page| page.words[word] >> bit & 1 == 1)
    }

    /// Classifies `tsn` without accepting it.
    #[inline]
    pub fn classify(&self, tsn: Tsn) -> Arrival {
        match self.classify_point(tsn) {
            Arrival::New if self.runs > 0 && self.has(tsn) => Arrival::Duplicate,
            arrival => arrival,
        }
    }

    /// Whether `tsn` [is new](Self::classify), and a TSN before it is missing.
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

    /// Accepts a TSN that is [new](Self::classify).
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

    /// Advances the cumulative TSN to `tsn`, because the TSN after the cumulative TSN has arrived.
    /// Without gaps, `tsn` may be further ahead.
    #[inline(always)]
    pub fn advance(&mut self, tsn: Tsn) -> Neighbours {
        self.cumulative = tsn;
        let after = self.runs > 0 && self.pass_first_run(tsn.next());
        if self.highest.lt(self.cumulative) {
            self.highest = self.cumulative;
        }
        Neighbours {
            before: true,
            after,
        }
    }

    /// Advances the cumulative TSN over the range that starts at `tsn`, if it exists.
    #[inline(never)]
    fn pass_first_run(&mut self, tsn: Tsn) -> bool {
        let arrived = self.has(tsn);
        if arrived {
            self.cumulative = self.find(tsn, false).prev();
            self.clear(tsn, self.cumulative);
            self.runs -= 1;
        }
        arrived
    }

    fn beside(&self, tsn: Tsn) -> Neighbours {
        Neighbours {
            before: self.has(tsn.prev()),
            after: self.has(tsn.next()),
        }
    }

    /// Marks all TSNs up to `to` as received. Returns `false` if they were received before, or if
    /// `to` is too far ahead.
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

    /// Classifies `to` as a new cumulative TSN.
    #[inline]
    pub fn classify_point(&self, to: Tsn) -> Arrival {
        match to.distance_from(self.cumulative) {
            1..=REACH => Arrival::New,
            _ if to.le(self.cumulative) => Arrival::Duplicate,
            // At a distance of exactly 2^31, a TSN is neither before nor after.
            _ => Arrival::OutOfReach,
        }
    }

    /// Removes a received TSN above the cumulative TSN, which the peer must then retransmit.
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

    /// First range after `tsn`, which must exist.
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

    /// First TSN from `from` on that has arrived, or that is missing if `arrived` is false. A
    /// missing one always exists, because the bit of the cumulative TSN is never set. Callers that
    /// search for a received TSN know that one exists.
    #[inline]
    fn find(&self, from: Tsn, arrived: bool) -> Tsn {
        let flip = if arrived { 0 } else { u64::MAX };
        let (mut number, mut word, bit) = place(from);
        let mut mask = above(bit as usize);
        // One round over all pages, and the rest of the first page.
        for _ in 0..=PAGES {
            work_counter::count(1);
            match self.bitmap(number) {
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

    /// Last received TSN before `tsn`.
    fn last_before(&self, tsn: Tsn) -> Tsn {
        if self.runs == 0 {
            return self.cumulative;
        }
        let (mut number, mut word, bit) = place(tsn);
        let mut mask = !above(bit as usize);
        for _ in 0..=PAGES {
            work_counter::count(1);
            if let Some(page) = self.bitmap(number) {
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

    /// The lowest `count` Gap Ack Blocks in order, or all if there are fewer.
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

    /// Removes the first `count` duplicates, which have been reported.
    pub fn forget_duplicates(&mut self, count: usize) {
        (self.duplicates).change(|it| drop(it.drain(..count.min(it.len()))));
    }
}

/// Lower 16 bits of the TSN at this position.
#[inline]
fn index(page: usize, word: usize, bit: u32) -> u16 {
    ((page * WORDS + word) * 64) as u16 + bit as u16
}

/// First TSN from `from` on whose lower 16 bits have this position in the pages.
#[inline]
fn tsn_at(from: Tsn, page: usize, word: usize, bit: u32) -> Tsn {
    let forth = index(page, word, bit).wrapping_sub(from.0 as u16);
    from.add(forth.into())
}

/// Iterator over the Gap Ack Blocks in order. Reads one word of the bitmap after the other.
#[derive(Clone, Debug)]
pub(super) struct Blocks<'a> {
    tracker: &'a TsnTracker,
    /// TSN of the lowest bit of the current word, and the bits of the word that were not read yet.
    base: Tsn,
    word: u64,
    left: usize,
}

impl Blocks<'_> {
    /// Continues the iteration at `tsn`.
    fn go_to(&mut self, tsn: Tsn) {
        let (page, word, bit) = place(tsn);
        let page = self.tracker.bitmap(page);
        self.base = Tsn(tsn.0 & !63);
        self.word = page.map_or(0, |page| page.words[word]) & above(bit as usize);
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
            start: first.distance_from(self.tracker.cumulative) as u16,
            end: last.distance_from(self.tracker.cumulative) as u16,
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Blocks<'_> {}

#[cfg(test)]
mod tests;
