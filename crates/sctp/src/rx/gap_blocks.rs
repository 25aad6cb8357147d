//! The lowest runs of TSNs after the cumulative TSN, as reported in a SACK.
//!
//! While there are gaps every packet triggers a SACK (RFC 9260 §6.7), and a peer can force each to
//! report the maximum number of blocks. The blocks are therefore kept between SACKs, because an
//! arriving chunk changes only one of them.

use anabranch_wire::Tsn;
use anabranch_wire::chunk::GapAckBlock;

use super::work_counter;

/// Maximum number of kept runs: slightly more than a SACK of 1,500 bytes can report.
const MAX_RUNS: usize = 384;

/// A run of received TSNs, both ends inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TsnRange {
    pub first: Tsn,
    pub last: Tsn,
}

impl TsnRange {
    /// The gap ack block relative to this cumulative TSN. The tracker takes nothing that is more
    /// than 65,535 past it.
    #[inline]
    pub fn block(&self, cumulative: Tsn) -> GapAckBlock {
        GapAckBlock {
            start: self.first.distance_from(cumulative) as u16,
            end: self.last.distance_from(cumulative) as u16,
        }
    }
}

/// Whether the TSNs adjacent to a new one have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Neighbours {
    pub before: bool,
    pub after: bool,
}

/// The lowest runs, at most [`MAX_RUNS`].
#[derive(Debug, Default)]
pub(super) struct LowestGapBlocks {
    runs: Vec<TsnRange>,
}

impl LowestGapBlocks {
    /// The lowest `count` runs, or all kept ones.
    #[inline]
    pub fn first(&self, count: usize) -> &[TsnRange] {
        &self.runs[..count.min(self.runs.len())]
    }

    /// The last TSN of the last kept run.
    pub fn end(&self) -> Option<Tsn> {
        self.runs.last().map(|run| run.last)
    }

    /// Whether more runs could be kept, given `runs` in total.
    #[inline]
    pub fn lacks(&self, runs: usize) -> bool {
        self.runs.len() < runs.min(MAX_RUNS)
    }

    /// Whether the maximum number is kept, and all end before `tsn` without touching it.
    #[inline]
    pub fn ends_before(&self, tsn: Tsn, cumulative: Tsn) -> bool {
        let offset = |tsn: Tsn| tsn.distance_from(cumulative);
        let end = self.end().filter(|_| self.runs.len() == MAX_RUNS);
        end.is_some_and(|end| offset(end) + 1 < offset(tsn))
    }

    /// Number of runs that begin at or before `tsn`.
    fn begun(&self, tsn: Tsn, cumulative: Tsn) -> usize {
        let offset = tsn.distance_from(cumulative);
        self.runs.partition_point(|run| {
            work_counter::count(1);
            run.first.distance_from(cumulative) <= offset
        })
    }

    /// Counts the moves for an insertion or removal at `at`; one step moves 16 runs.
    fn moves(&self, at: usize) {
        work_counter::count((self.runs.len() - at) / 16);
    }

    /// Takes a new `tsn`, whose run now ends with `last`.
    pub fn insert(&mut self, tsn: Tsn, last: Tsn, beside: Neighbours, cumulative: Tsn) {
        let at = self.begun(tsn, cumulative);
        match (beside.before, beside.after) {
            (false, false) => {
                self.runs.truncate(MAX_RUNS - 1);
                self.moves(at);
                self.runs.insert(at, TsnRange { first: tsn, last });
            }
            (false, true) => {
                if let Some(run) = self.runs.get_mut(at) {
                    run.first = tsn;
                }
            }
            (true, after) => {
                if let Some(run) = self.runs[..at].last_mut() {
                    run.last = last;
                }
                if after && at < self.runs.len() {
                    self.moves(at);
                    self.runs.remove(at);
                }
            }
        }
    }

    /// Removes `tsn`.
    pub fn withdraw(&mut self, tsn: Tsn, beside: Neighbours, cumulative: Tsn) {
        let Some(at) = self.begun(tsn, cumulative).checked_sub(1) else {
            return;
        };
        let run = &mut self.runs[at];
        if tsn.distance_from(cumulative) > run.last.distance_from(cumulative) {
            return;
        }
        let rest = TsnRange {
            first: tsn.next(),
            last: run.last,
        };
        match (beside.before, beside.after) {
            (false, false) => {
                self.moves(at);
                self.runs.remove(at);
                self.shrink();
            }
            (true, false) => run.last = tsn.prev(),
            (false, true) => *run = rest,
            (true, true) => {
                run.last = tsn.prev();
                if at + 1 == MAX_RUNS {
                    return;
                }
                self.runs.truncate(MAX_RUNS - 1);
                self.moves(at);
                self.runs.insert(at + 1, rest);
            }
        }
    }

    /// The run with `below` lower ones, if kept.
    #[inline]
    pub fn get(&self, below: usize) -> Option<TsnRange> {
        self.runs.get(below).copied()
    }

    /// The cumulative TSN has passed the first `count` runs, or all kept ones.
    pub fn drop_lowest(&mut self, count: usize) {
        if count == 0 {
            return;
        }
        self.moves(0);
        self.runs.drain(..count.min(self.runs.len()));
        self.shrink();
    }

    /// Adds the next run after the kept ones.
    pub fn push(&mut self, run: TsnRange) {
        self.runs.push(run);
    }

    /// Releases the memory of many gaps once there are none.
    fn shrink(&mut self) {
        if self.runs.is_empty() && self.runs.capacity() > 16 {
            self.runs = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use anabranch_wire::Tsn;

    use super::super::tsn_tracker::TsnTracker;
    use crate::test_rng::test_rng;
    use crate::work;

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
