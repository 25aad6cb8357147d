//! Sets of outstanding TSNs, a bit each: to find the next one costs no look at those between.

use std::fmt;

use anabranch_wire::serial::Tsn;

use crate::work;

/// TSNs that lie within [`TsnSet::capacity`] of each other.
#[derive(Default)]
pub(super) struct TsnSet {
    /// A power of two of them, or none.
    words: Vec<u64>,
}

/// Counts one chunk, word of a set or gap block that is looked at.
#[inline]
pub(super) fn step() {
    work::count(1);
}

/// What is in it follows from the chunks.
impl fmt::Debug for TsnSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TsnSet")
    }
}

impl TsnSet {
    /// TSNs from the first to the last that it can hold; 0 or a power of two from 64 on.
    pub fn capacity(&self) -> usize {
        self.words.len() * 64
    }

    /// Makes room for `capacity` TSNs in a row, rounded up; those from `from` to before `end` are kept.
    pub fn grow(&mut self, capacity: usize, from: Tsn, end: Tsn) {
        let words = capacity.div_ceil(64).next_power_of_two();
        let before = std::mem::replace(&mut self.words, vec![0; words]);
        let before = TsnSet { words: before };
        let mut next = before.next(from, end);
        while let Some(tsn) = next {
            self.insert(tsn);
            next = before.next(tsn.next(), end);
        }
    }

    /// Gives its memory back. It must be empty.
    pub fn release(&mut self) {
        debug_assert!(self.words.iter().all(|word| *word == 0));
        self.words = Vec::new();
    }

    #[inline]
    fn word(&self, tsn: Tsn) -> usize {
        (tsn.0 as usize >> 6) & (self.words.len() - 1)
    }

    /// Puts a TSN in.
    #[inline]
    pub fn insert(&mut self, tsn: Tsn) {
        let word = self.word(tsn);
        self.words[word] |= 1 << (tsn.0 & 63);
    }

    /// Takes a TSN out, if it is in.
    #[inline]
    pub fn remove(&mut self, tsn: Tsn) {
        let word = self.word(tsn);
        self.words[word] &= !(1 << (tsn.0 & 63));
    }

    /// The first TSN in the set from `from` to before `end`.
    pub fn next(&self, from: Tsn, end: Tsn) -> Option<Tsn> {
        self.find(from, end, |word| self.words[word])
    }

    /// The first TSN from `from` to before `end` that is not in the set.
    pub fn next_absent(&self, from: Tsn, end: Tsn) -> Option<Tsn> {
        self.find(from, end, |word| !self.words[word])
    }

    /// The first TSN from `from` to before `end` that is in this set and in `other`, which has the same capacity.
    pub fn next_in_both(&self, other: &TsnSet, from: Tsn, end: Tsn) -> Option<Tsn> {
        self.find(from, end, |word| self.words[word] & other.words[word])
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
            let found = bits(self.word(at)) >> shift;
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

    /// The last TSN from `from` to before `end` that is not in the set.
    pub fn last_absent(&self, from: Tsn, end: Tsn) -> Option<Tsn> {
        let mut at = end;
        while from.lt(at) {
            step();
            at = at.prev();
            let shift = 63 - (at.0 & 63);
            let absent = !self.words[self.word(at)] << shift;
            let skip = absent.leading_zeros();
            if absent != 0 && skip <= at.distance_from(from) {
                return Some(Tsn(at.0.wrapping_sub(skip)));
            }
            // To the first bit of this word, or to the end of the search.
            at = Tsn(at.0.wrapping_sub((63 - shift).min(at.distance_from(from))));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against a list of what is in, over windows that begin everywhere around the wrap.
    #[test]
    fn what_is_found_agrees_with_a_list() {
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
            let (mut set, mut other) = (TsnSet::default(), TsnSet::default());
            for it in [&mut set, &mut other] {
                it.grow(1, first, first);
                it.grow(len as usize, first, first);
            }
            let density = 1 + draw(70);
            let mut list = vec![[false; 2]; len as usize];
            for (offset, member) in list.iter_mut().enumerate() {
                let tsn = first.add(offset as u32);
                *member = [draw(density) == 0, draw(2) == 0];
                if member[0] {
                    set.insert(tsn);
                }
                if member[1] {
                    other.insert(tsn);
                }
            }
            let (a, b) = (draw(len), draw(len + 1));
            let (from, end) = (first.add(a), first.add(b));
            let find = |wanted: &dyn Fn(&[bool; 2]) -> bool| {
                let found = (a..b).find(|&offset| wanted(&list[offset as usize]));
                found.map(|offset| first.add(offset))
            };
            assert_eq!(set.next(from, end), find(&|it| it[0]), "round {round}");
            assert_eq!(set.next_absent(from, end), find(&|it| !it[0]));
            assert_eq!(
                set.next_in_both(&other, from, end),
                find(&|it| it[0] && it[1])
            );
            let last = (a..b).rfind(|&offset| !list[offset as usize][0]);
            assert_eq!(
                set.last_absent(from, end),
                last.map(|offset| first.add(offset))
            );
            set.grow(4 * len as usize, first, first.add(len));
            assert_eq!(set.next(from, end), find(&|it| it[0]), "after it grew");
            set.remove(from);
            assert_ne!(set.next(from, from.next()), Some(from));
        }
    }
}
