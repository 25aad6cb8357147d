//! Which TSNs have arrived: the cumulative point, the gap blocks past it, the duplicates (RFC 9260 §3.3.4, §6.7).

use std::collections::VecDeque;

use anabranch_wire::Tsn;
use anabranch_wire::chunk::GapAckBlock;

/// A Gap Ack Block names a TSN by 16 bits of offset, so nothing further on can be reported, and nothing is taken.
const REACH: u32 = u16::MAX as u32;
/// Duplicates kept for the next SACK; a peer that repeats more is told of the first.
const MOST_DUPLICATES: usize = 64;

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

/// TSNs received. Gap blocks are kept ascending and apart, and grow by one TSN at a time.
#[derive(Debug)]
pub(super) struct TsnTracker {
    cumulative: Tsn,
    /// First and last TSN of each run past the cumulative point.
    runs: VecDeque<(Tsn, Tsn)>,
    duplicates: Vec<Tsn>,
}

impl TsnTracker {
    pub fn new(initial_tsn: Tsn) -> Self {
        Self {
            cumulative: initial_tsn.prev(),
            runs: VecDeque::new(),
            duplicates: Vec::new(),
        }
    }

    /// The last TSN received before the first hole.
    pub fn cumulative(&self) -> Tsn {
        self.cumulative
    }

    /// The highest TSN received.
    pub fn highest(&self) -> Tsn {
        self.runs.back().map_or(self.cumulative, |run| run.1)
    }

    pub fn has_gaps(&self) -> bool {
        !self.runs.is_empty()
    }

    pub fn gap_count(&self) -> usize {
        self.runs.len()
    }

    /// Where the run is that holds `tsn`, or where it would go.
    fn locate(&self, tsn: Tsn) -> Result<usize, usize> {
        let offset = tsn.distance_from(self.cumulative);
        let position = self
            .runs
            .partition_point(|run| run.1.distance_from(self.cumulative) < offset);
        match self.runs.get(position) {
            Some(run) if run.0.distance_from(self.cumulative) <= offset => Ok(position),
            _ => Err(position),
        }
    }

    /// What `tsn` would be, without taking it.
    pub fn classify(&self, tsn: Tsn) -> Arrival {
        if tsn.le(self.cumulative) {
            return Arrival::Duplicate;
        }
        match tsn.distance_from(self.cumulative) {
            // The very opposite of the circle is neither before nor after.
            offset if offset > REACH => Arrival::OutOfReach,
            _ if self.locate(tsn).is_ok() => Arrival::Duplicate,
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
            if self.runs.front().is_some_and(|run| run.0 == tsn.next()) {
                self.cumulative = self.runs.pop_front().map_or(tsn, |run| run.1);
            }
            return;
        }
        let Err(position) = self.locate(tsn) else {
            return;
        };
        let joins_before = position > 0 && self.runs[position - 1].1.next() == tsn;
        let joins_after = self
            .runs
            .get(position)
            .is_some_and(|run| run.0 == tsn.next());
        match (joins_before, joins_after) {
            (true, true) => {
                self.runs[position - 1].1 = self.runs[position].1;
                self.runs.remove(position);
            }
            (true, false) => self.runs[position - 1].1 = tsn,
            (false, true) => self.runs[position].0 = tsn,
            (false, false) => self.runs.insert(position, (tsn, tsn)),
        }
    }

    /// The gap blocks, lowest first.
    pub fn blocks(&self) -> impl ExactSizeIterator<Item = GapAckBlock> + Clone + '_ {
        let offset = |tsn: Tsn| tsn.distance_from(self.cumulative) as u16;
        self.runs.iter().map(move |run| GapAckBlock {
            start: offset(run.0),
            end: offset(run.1),
        })
    }

    pub fn duplicates(&self) -> &[Tsn] {
        &self.duplicates
    }

    /// The first `count` duplicates have been reported.
    pub fn forget_duplicates(&mut self, count: usize) {
        self.duplicates.drain(..count.min(self.duplicates.len()));
    }
}

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
