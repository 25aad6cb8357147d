//! Scoreboard: the data that the peer has reported by SACK beyond the cumulative point (RFC 2018,
//! RFC 6675 §4). The cumulative point is the offset before which all data has been acknowledged
//! (`SND.UNA`).
//!
//! The scoreboard stores only ranges of reported data, and no record per segment. Everything else
//! that RFC 6675 requires of a scoreboard follows from the ranges and from two offsets that only
//! increase: `lost_to` (every gap below it is lost) and `retransmitted_to` (`HighRxt`). Counters of
//! bytes make the pipe cheap to compute, because the cost of an acknowledgement should depend only
//! on its new information.

use std::ops::Range;

/// Ranges of offsets that the peer has reported, in ascending order without overlap.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scoreboard {
    ranges: Vec<Range<u64>>,
    /// Number of bytes in `ranges`.
    sacked: u64,
    una: u64,
    lost_to: u64,
    /// Number of bytes of `ranges` below `lost_to`.
    sacked_below_lost: u64,
    retransmitted_to: u64,
    /// Number of bytes of `ranges` below `retransmitted_to`.
    sacked_below_retransmitted: u64,
}

/// Number of bytes of `range` that are below `mark`.
fn below(range: &Range<u64>, mark: u64) -> u64 {
    mark.clamp(range.start, range.end) - range.start
}

impl Scoreboard {
    /// Clears all ranges and offsets except the cumulative point.
    pub(crate) fn clear(&mut self) {
        self.restart(self.una);
    }

    /// Moves the cumulative point to `una` and clears everything else.
    #[inline]
    pub(crate) fn restart(&mut self, una: u64) {
        self.una = self.una.max(una);
        self.ranges.clear();
        (
            self.sacked,
            self.sacked_below_lost,
            self.sacked_below_retransmitted,
        ) = (0, 0, 0);
        (self.lost_to, self.retransmitted_to) = (self.una, self.una);
    }

    /// `HighRxt`: offset after the highest byte retransmitted in this recovery.
    pub(crate) fn retransmitted_to(&self) -> u64 {
        self.retransmitted_to
    }

    /// Number of bytes reported by the peer beyond the cumulative point.
    pub(crate) fn reported(&self) -> u64 {
        self.sacked
    }

    /// Moves the cumulative point to `una`. Returns how many bytes below it had been reported
    /// before.
    pub(crate) fn advance(&mut self, una: u64) -> u64 {
        self.una = self.una.max(una);
        let mut freed = 0;
        let gone = self.ranges.partition_point(|range| range.end <= self.una);
        for index in 0..gone {
            let range = self.ranges[index].clone();
            freed += self.uncount(&range);
        }
        self.ranges.drain(..gone);
        if let Some(first) = self.ranges.first().cloned()
            && first.start < self.una
        {
            freed += self.uncount(&(first.start..self.una));
            self.ranges[0].start = self.una;
        }
        self.lost_to = self.lost_to.max(self.una);
        self.retransmitted_to = self.retransmitted_to.max(self.una);
        freed
    }

    fn uncount(&mut self, range: &Range<u64>) -> u64 {
        let length = range.end - range.start;
        self.sacked -= length;
        self.sacked_below_lost -= below(range, self.lost_to);
        self.sacked_below_retransmitted -= below(range, self.retransmitted_to);
        length
    }

    /// Records that the peer has received `block`, after clipping it to the cumulative point and to
    /// `max`. Returns the number of newly reported bytes. At most `limit` ranges are stored, so
    /// that a malicious peer cannot exhaust memory. A block that would need one more range is
    /// ignored.
    pub(crate) fn add(&mut self, block: Range<u64>, max: u64, limit: usize) -> u64 {
        let mut block = block.start.max(self.una)..block.end.min(max);
        if block.start >= block.end {
            return 0;
        }
        // Index range of the stored ranges that touch the block: `first` up to, but not including,
        // `last`.
        let first = self.ranges.partition_point(|range| range.end < block.start);
        let last = first + self.ranges[first..].partition_point(|range| range.start <= block.end);
        if first == last {
            if self.ranges.len() >= limit {
                return 0;
            }
            self.ranges.insert(first, block.clone());
            return self.count(&block);
        }
        let mut news = 0;
        let mut at = block.start;
        for index in first..last {
            let range = self.ranges[index].clone();
            if at < range.start {
                news += self.count(&(at..range.start));
            }
            at = at.max(range.end);
        }
        if at < block.end {
            news += self.count(&(at..block.end));
        }
        block.start = block.start.min(self.ranges[first].start);
        block.end = block.end.max(self.ranges[last - 1].end);
        self.ranges[first] = block;
        self.ranges.drain(first + 1..last);
        news
    }

    fn count(&mut self, range: &Range<u64>) -> u64 {
        let length = range.end - range.start;
        self.sacked += length;
        self.sacked_below_lost += below(range, self.lost_to);
        self.sacked_below_retransmitted += below(range, self.retransmitted_to);
        length
    }

    /// Marks gaps as lost according to RFC 6675 §4: those above which the peer has reported
    /// `threshold` ranges, or more than `threshold - 1` segments of data. Returns whether the first
    /// gap, which begins at the cumulative point, is lost.
    pub(crate) fn judge_lost(&mut self, threshold: u32, segment: u64) -> bool {
        let enough_bytes = u64::from(threshold.saturating_sub(1)) * segment;
        let (mut runs, mut bytes) = (0, 0);
        let mut mark = None;
        for range in self.ranges.iter().rev() {
            runs += 1;
            bytes += range.end - range.start;
            if runs >= threshold || bytes > enough_bytes {
                mark = Some(range.start);
                break;
            }
        }
        if let Some(mark) = mark {
            self.mark_lost_to(mark);
        }
        self.lost_to > self.una
    }

    /// Marks every gap below `mark` as lost.
    fn mark_lost_to(&mut self, mark: u64) {
        if mark > self.lost_to {
            self.sacked_below_lost += self.sacked_between(self.lost_to, mark);
            self.lost_to = mark;
        }
    }

    /// Records that data up to `to` was retransmitted.
    pub(crate) fn mark_retransmitted_to(&mut self, to: u64) {
        if to > self.retransmitted_to {
            self.sacked_below_retransmitted += self.sacked_between(self.retransmitted_to, to);
            self.retransmitted_to = to;
        }
    }

    /// Starts a recovery: no segment counts as retransmitted yet.
    pub(crate) fn begin_recovery(&mut self) {
        self.retransmitted_to = self.una;
        self.sacked_below_retransmitted = 0;
    }

    fn sacked_between(&self, from: u64, to: u64) -> u64 {
        let first = self.ranges.partition_point(|range| range.end <= from);
        self.ranges[first..]
            .iter()
            .take_while(|range| range.start < to)
            .map(|range| range.end.min(to) - range.start.max(from))
            .sum()
    }

    /// `SetPipe()` of RFC 6675 §4: estimated number of bytes below offset `max` that are in the
    /// network.
    pub(crate) fn pipe(&self, max: u64) -> u64 {
        let not_lost = (max - self.lost_to.min(max)) - (self.sacked - self.sacked_below_lost);
        let retransmitted = (self.retransmitted_to - self.una) - self.sacked_below_retransmitted;
        not_lost + retransmitted
    }

    /// First gap at or after `from`; it must end before reported data.
    pub(crate) fn hole_from(&self, from: u64) -> Option<Range<u64>> {
        let start = self.not_sacked_from(from);
        let next = self
            .ranges
            .get(self.ranges.partition_point(|range| range.start <= start))?;
        Some(start..next.start)
    }

    /// First lost gap that was not yet retransmitted (RFC 6675 §4, `NextSeg()` rule 1).
    pub(crate) fn lost_hole(&self) -> Option<Range<u64>> {
        self.hole_from(self.retransmitted_to.max(self.una))
            .filter(|hole| hole.start < self.lost_to)
    }

    /// Last gap below `max`; empty if no data is missing.
    pub(crate) fn last_hole(&self, max: u64) -> Range<u64> {
        match self.ranges.as_slice() {
            [] => self.una..max,
            [.., last] if last.end < max => last.end..max,
            [last] => self.una..last.start,
            [.., before, last] => before.end..last.start,
        }
    }

    /// Offset `at`, or the end of the reported range that contains it.
    pub(crate) fn not_sacked_from(&self, at: u64) -> u64 {
        let index = self.ranges.partition_point(|range| range.end <= at);
        match self.ranges.get(index) {
            Some(range) if range.start <= at => range.end,
            _ => at,
        }
    }

    /// Start of the first reported range after `at`, if any.
    pub(crate) fn next_range_after(&self, at: u64) -> Option<u64> {
        self.ranges
            .get(self.ranges.partition_point(|range| range.start <= at))
            .map(|range| range.start)
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init)] // a list with one range is intended
mod tests {
    use super::*;

    const LIMIT: usize = 64;

    /// A scoreboard with segments of 10 bytes and cumulative point `una`, to which the peer has
    /// reported the ranges `sacked`.
    fn board(una: u64, sacked: &[Range<u64>]) -> Scoreboard {
        let mut board = Scoreboard::default();
        board.advance(una);
        board.clear();
        for range in sacked {
            board.add(range.clone(), 1_000, LIMIT);
        }
        board
    }

    #[test]
    fn blocks_merge_and_only_news_count() {
        let mut board = board(10, &[20..30, 40..50]);
        assert_eq!(board.add(20..30, 1_000, LIMIT), 0);
        assert_eq!(board.add(25..45, 1_000, LIMIT), 10);
        assert_eq!(board.ranges, [20..50]);
        assert_eq!(
            board.add(50..60, 1_000, LIMIT),
            10,
            "touching ranges become one"
        );
        assert_eq!(
            board.add(0..15, 1_000, LIMIT),
            5,
            "what lies below the cumulative point is no news"
        );
        assert_eq!(
            board.add(90..200, 100, LIMIT),
            10,
            "nor is what was never sent"
        );
        assert_eq!(
            board.add(70..80, 100, 3),
            0,
            "no more ranges than the limit"
        );
        assert_eq!(board.ranges, [10..15, 20..60, 90..100]);
        assert_eq!(board.sacked, 55);
        assert_eq!(board.advance(25), 10);
        assert_eq!(
            (board.sacked, board.ranges.as_slice()),
            (45, &[25..60, 90..100][..])
        );
    }

    /// RFC 6675 §4 by hand: a gap is lost if three ranges, or the bytes of more than two segments,
    /// were reported above it.
    #[test]
    fn a_hole_is_lost_by_ranges_or_by_bytes() {
        let mut by_ranges = board(0, &[10..15, 20..25]);
        assert!(!by_ranges.judge_lost(3, 10));
        by_ranges.add(30..35, 1_000, LIMIT);
        assert!(by_ranges.judge_lost(3, 10));
        assert_eq!(by_ranges.lost_to, 10);
        let mut by_bytes = board(0, &[10..30]);
        assert!(
            !by_bytes.judge_lost(3, 10),
            "two segments are not more than two"
        );
        by_bytes.add(30..31, 1_000, LIMIT);
        assert!(by_bytes.judge_lost(3, 10));
    }

    #[test]
    fn the_pipe_counts_what_flies() {
        // 0..10 is lost, 10..40 is reported, and 40..60 is in flight.
        let mut board = board(0, &[10..40]);
        assert_eq!(board.pipe(60), 30);
        board.judge_lost(3, 10);
        assert_eq!(board.pipe(60), 20);
        assert_eq!(board.lost_hole(), Some(0..10));
        board.begin_recovery();
        board.mark_retransmitted_to(10);
        assert_eq!((board.pipe(60), board.lost_hole()), (30, None));
        board.add(50..60, 60, LIMIT);
        assert_eq!(board.pipe(60), 20);
        assert_eq!(board.hole_from(board.retransmitted_to()), Some(40..50));
        board.advance(40);
        assert_eq!((board.pipe(60), board.sacked), (10, 10));
    }

    #[test]
    fn holes_and_seams() {
        let board = board(5, &[10..20, 30..40]);
        assert_eq!(board.hole_from(5), Some(5..10));
        assert_eq!(board.hole_from(10), Some(20..30));
        assert_eq!(board.hole_from(20), Some(20..30));
        assert_eq!(board.hole_from(35), None);
        assert_eq!((board.last_hole(60), board.last_hole(40)), (40..60, 20..30));
        assert_eq!(
            (
                Scoreboard::default().last_hole(7),
                super::tests::board(5, &[10..20]).last_hole(20)
            ),
            (0..7, 5..10)
        );
        assert_eq!(
            (
                board.not_sacked_from(9),
                board.not_sacked_from(10),
                board.not_sacked_from(20)
            ),
            (9, 20, 20)
        );
        assert_eq!(
            (
                board.next_range_after(5),
                board.next_range_after(10),
                board.next_range_after(30)
            ),
            (Some(10), Some(30), None)
        );
    }

    /// After random reports, advances and marks, the counters must equal those of a byte-by-byte
    /// model.
    #[test]
    fn counters_equal_a_byte_model() {
        for seed in 1..=200_u64 {
            let mut state = seed;
            let mut draw = |below: u64| {
                state = state
                    .wrapping_mul(6364136223846793005)
                    .wrapping_add(1442695040888963407);
                (state >> 33) % below
            };
            let max = 400;
            let mut board = board(0, &[]);
            let mut held = vec![false; max as usize];
            let mut una = 0;
            for _ in 0..60 {
                match draw(5) {
                    0 => {
                        una = (una + draw(20)).min(max);
                        board.advance(una);
                    }
                    1 => {
                        let to = una + draw(max - una + 1);
                        board.mark_retransmitted_to(to);
                    }
                    2 => {
                        board.judge_lost(3, 10);
                    }
                    _ => {
                        let start = draw(max);
                        let end = (start + 1 + draw(30)).min(max);
                        let news = (start.max(una)..end.max(una))
                            .filter(|&i| !held[i as usize])
                            .count() as u64;
                        held[start as usize..end as usize].fill(true);
                        assert_eq!(board.add(start..end, max, usize::MAX), news, "seed {seed}");
                    }
                }
                let free =
                    |from: u64, to: u64| (from..to).filter(|&i| !held[i as usize]).count() as u64;
                let model = free(board.lost_to.max(una), max) + free(una, board.retransmitted_to);
                assert_eq!(board.pipe(max), model, "seed {seed}");
            }
        }
    }
}
