//! Bit sets of outstanding TSNs, for lookups without a scan of the TSNs between.

use std::fmt;

use anabranch_wire::serial::Tsn;

use crate::path::PathId;
use crate::work_counter;

/// Bits of 64 TSNs in each of four sets. TSNs that are not outstanding are in no set. A chunk that
/// is in flight and has no further state is in no set, either, so most chunks do not change the
/// sets.
#[derive(Clone, Copy, Default)]
pub(super) struct Word {
    /// Chunks reported by a Gap Ack Block, or abandoned.
    pub acked: u64,
    /// Chunks that wait for retransmission.
    pub marked: u64,
    /// Chunks whose missing reports are ignored until they are retransmitted.
    pub judged: u64,
    /// Abandoned chunks.
    pub abandoned: u64,
}

/// Sets of TSNs, all of which lie within [`TsnSets::capacity`] of each other.
#[derive(Default)]
pub(super) struct TsnSets {
    /// Words of the sets; their number is 0 or a power of two.
    words: Vec<Word>,
    /// Unacknowledged TSNs last sent on path 1, 2 and so on; all others were sent on path 0.
    elsewhere: Vec<Vec<u64>>,
}

/// Counts one examined chunk, word or gap ack block.
#[inline]
pub(super) fn step() {
    work_counter::count(1);
}

/// Prints no contents, because they follow from the chunks.
impl fmt::Debug for TsnSets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TsnSets")
    }
}

impl TsnSets {
    /// Number of consecutive TSNs that fit; 0 or a power of two from 64 on.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.words.len() * 64
    }

    /// Increases the capacity to `capacity` consecutive TSNs, rounded up. Keeps the TSNs in
    /// `from..end`.
    pub fn grow(&mut self, capacity: usize, from: Tsn, end: Tsn) {
        let words = capacity.div_ceil(64).next_power_of_two();
        let before = Self {
            words: std::mem::replace(&mut self.words, vec![Word::default(); words]),
            elsewhere: std::mem::take(&mut self.elsewhere),
        };
        self.elsewhere = vec![vec![0; words]; before.elsewhere.len()];
        if before.words.is_empty() {
            return;
        }
        for tsn in (0..end.distance_from(from)).map(|offset| from.add(offset)) {
            let (old, bit) = (before.index(tsn), bit_of(tsn));
            let new = self.index(tsn);
            let (from, to) = (&before.words[old], &mut self.words[new]);
            to.acked |= from.acked & bit;
            to.marked |= from.marked & bit;
            to.judged |= from.judged & bit;
            to.abandoned |= from.abandoned & bit;
            for (to, from) in self.elsewhere.iter_mut().zip(&before.elsewhere) {
                to[new] |= from[old] & bit;
            }
        }
    }

    /// Releases the memory. The sets must be empty.
    pub fn release(&mut self) {
        *self = Self::default();
    }

    #[inline]
    fn index(&self, tsn: Tsn) -> usize {
        (tsn.0 as usize >> 6) & (self.words.len() - 1)
    }

    /// Word of a TSN, and mask of its bit.
    #[inline]
    pub fn word(&mut self, tsn: Tsn) -> (&mut Word, u64) {
        let index = self.index(tsn);
        (&mut self.words[index], bit_of(tsn))
    }

    /// Clears `judged` for `count` TSNs from `from` on, which are no longer outstanding. Returns
    /// the number of bits that were set.
    pub fn forget_judged(&mut self, from: Tsn, count: u32) -> u32 {
        let (mut at, mut left, mut were) = (from, count, 0);
        while left > 0 {
            step();
            let shift = at.0 & 63;
            let here = left.min(64 - shift);
            let bits = (u64::MAX >> (64 - here)) << shift;
            let (word, _) = self.word(at);
            were += (word.judged & bits).count_ones();
            word.judged &= !bits;
            at = at.add(here);
            left -= here;
        }
        were
    }

    /// Records that an unacknowledged TSN was last sent on `path`.
    #[inline]
    pub fn put_on(&mut self, path: PathId, tsn: Tsn) {
        if path != PathId(0) {
            self.put_elsewhere(path, tsn);
        }
    }

    fn put_elsewhere(&mut self, path: PathId, tsn: Tsn) {
        let (paths, words) = (usize::from(path.0), self.words.len());
        if self.elsewhere.len() < paths {
            self.elsewhere.resize(paths, vec![0; words]);
        }
        let index = self.index(tsn);
        self.elsewhere[paths - 1][index] |= bit_of(tsn);
    }

    /// Removes a TSN that is no longer unacknowledged on `path`.
    #[inline]
    pub fn take_off(&mut self, path: PathId, tsn: Tsn) {
        if path != PathId(0) {
            let index = self.index(tsn);
            self.elsewhere[usize::from(path.0) - 1][index] &= !bit_of(tsn);
        }
    }

    /// Unacknowledged TSNs of a word that were last sent on `path`.
    fn on_path(&self, path: PathId, index: usize) -> u64 {
        match usize::from(path.0) {
            0 => {
                let elsewhere = self.elsewhere.iter().map(|set| set[index]);
                elsewhere.fold(!self.words[index].acked, |here, there| here & !there)
            }
            path => self.elsewhere.get(path - 1).map_or(0, |set| set[index]),
        }
    }

    /// First unacknowledged TSN in `from..end` that was last sent on `path`.
    pub fn next_on(&self, path: PathId, from: Tsn, end: Tsn) -> Option<Tsn> {
        self.find(from, end, |index| self.on_path(path, index))
    }

    /// Like [`TsnSets::next_on`], for marked chunks.
    pub fn next_marked_on(&self, path: PathId, from: Tsn, end: Tsn) -> Option<Tsn> {
        self.find(from, end, |index| {
            self.on_path(path, index) & self.words[index].marked
        })
    }

    /// Like [`TsnSets::next_on`], for chunks whose missing reports count.
    pub fn next_reportable_on(&self, path: PathId, from: Tsn, end: Tsn) -> Option<Tsn> {
        self.find(from, end, |index| {
            self.on_path(path, index) & !self.words[index].judged
        })
    }

    /// First TSN in `from..end` that is in the set `of`.
    #[inline]
    pub fn next(&self, from: Tsn, end: Tsn, of: impl Fn(&Word) -> u64) -> Option<Tsn> {
        self.find(from, end, |index| of(&self.words[index]))
    }

    #[inline]
    fn find(&self, from: Tsn, end: Tsn, bits: impl Fn(usize) -> u64) -> Option<Tsn> {
        if !from.lt(end) || self.words.is_empty() {
            return None;
        }
        let (mut at, mut left) = (from, end.distance_from(from));
        loop {
            step();
            let shift = at.0 & 63;
            let found = bits(self.index(at)) >> shift;
            if found != 0 {
                let skip = found.trailing_zeros();
                return (skip < left).then(|| at.add(skip));
            }
            let passed = 64 - shift;
            if passed >= left {
                return None;
            }
            left -= passed;
            at = at.add(passed);
        }
    }

    /// Last TSN in `from..end` that is in the set `of`.
    pub fn last(&self, from: Tsn, end: Tsn, of: impl Fn(&Word) -> u64) -> Option<Tsn> {
        let mut at = end;
        while from.lt(at) {
            step();
            at = at.prev();
            let shift = 63 - (at.0 & 63);
            let found = of(&self.words[self.index(at)]) << shift;
            let skip = found.leading_zeros();
            if found != 0 && skip <= at.distance_from(from) {
                return Some(Tsn(at.0.wrapping_sub(skip)));
            }
            // Continue before the first bit of this word, or end the search.
            at = Tsn(at.0.wrapping_sub((63 - shift).min(at.distance_from(from))));
        }
        None
    }
}

#[inline]
fn bit_of(tsn: Tsn) -> u64 {
    1 << (tsn.0 & 63)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with a list, for windows at all positions around the wrap-around of TSNs.
    #[test]
    fn a_tsn_set_equals_a_list() {
        let mut random = 0x2545_f491_u32;
        let mut draw = |below: u32| {
            random ^= random << 13;
            random ^= random >> 17;
            random ^= random << 5;
            random % below
        };
        for round in 0..2_000 {
            let first = Tsn(u32::MAX.wrapping_sub(300).wrapping_add(draw(600)));
            let len = 1 + draw(500);
            let mut sets = TsnSets::default();
            sets.grow(1, first, first);
            sets.grow(len as usize, first, first);
            let density = 1 + draw(70);
            let mut list = vec![[false; 2]; len as usize];
            for (offset, member) in list.iter_mut().enumerate() {
                let tsn = first.add(offset as u32);
                *member = [draw(density) == 0, draw(2) == 0];
                let (word, bit) = sets.word(tsn);
                word.marked |= if member[0] { bit } else { 0 };
                if member[1] {
                    sets.put_on(PathId(2), tsn);
                }
            }
            let (a, b) = (draw(len), draw(len + 1));
            let (from, end) = (first.add(a), first.add(b));
            let find = |wanted: &dyn Fn(&[bool; 2]) -> bool| {
                let found = (a..b).find(|&offset| wanted(&list[offset as usize]));
                found.map(|offset| first.add(offset))
            };
            let (marked, unmarked) = (|word: &Word| word.marked, |word: &Word| !word.marked);
            assert_eq!(
                sets.next(from, end, marked),
                find(&|it| it[0]),
                "round {round}"
            );
            assert_eq!(sets.next(from, end, unmarked), find(&|it| !it[0]));
            let last = (a..b).rfind(|&offset| !list[offset as usize][0]);
            let last = last.map(|offset| first.add(offset));
            assert_eq!(sets.last(from, end, unmarked), last);
            for _ in 0..2 {
                let on = |path| sets.next_on(PathId(path), from, end);
                assert_eq!(on(0), find(&|it| !it[1]));
                assert_eq!(on(1), None);
                assert_eq!(on(2), find(&|it| it[1]));
                let both = sets.next_marked_on(PathId(2), from, end);
                assert_eq!(both, find(&|it| it[0] && it[1]));
                sets.grow(4 * len as usize, first, first.add(len));
                assert_eq!(sets.next(from, end, marked), find(&|it| it[0]), "grown");
            }
        }
    }
}
