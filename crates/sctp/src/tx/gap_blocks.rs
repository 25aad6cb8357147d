//! Gap Ack Blocks of the last SACK, as ranges of TSNs.

use anabranch_wire::chunk::GapAckBlock;

use super::tsn_set::step;

/// Range of TSNs as offsets from the cumulative TSN, both ends inclusive, `0 < start <= end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TsnRange {
    pub start: u32,
    pub end: u32,
}

/// Reads the Gap Ack Blocks of a SACK into `runs`, in ascending order and with at least one TSN
/// between them. Invalid blocks (end before start, or adjacent to the cumulative TSN) are ignored.
pub(super) fn read_blocks(blocks: impl Iterator<Item = GapAckBlock>, runs: &mut Vec<TsnRange>) {
    runs.clear();
    let mut in_order = true;
    for block in blocks.filter(|block| block.start >= 2 && block.end >= block.start) {
        step();
        let run = TsnRange {
            start: block.start.into(),
            end: block.end.into(),
        };
        in_order &= runs
            .last()
            .is_none_or(|last: &TsnRange| last.end + 1 < run.start);
        runs.push(run);
    }
    if !in_order {
        runs.sort_unstable_by_key(|run| run.start);
        runs.dedup_by(|next, kept| {
            let joins = next.start <= kept.end + 1;
            kept.end = if joins {
                kept.end.max(next.end)
            } else {
                kept.end
            };
            joins
        });
    }
}

/// Adjusts `runs` to a cumulative TSN that has advanced by `advance`, and removes the ranges that
/// the cumulative TSN has passed. A TSN directly after the new cumulative TSN is removed, too,
/// because a peer that has it would have advanced further.
pub(super) fn advance(runs: &mut Vec<TsnRange>, advance: u32) {
    if advance == 0 {
        return;
    }
    runs.retain_mut(|run| {
        step();
        if run.end < advance + 2 {
            return false;
        }
        run.start = run.start.saturating_sub(advance).max(2);
        run.end -= advance;
        true
    });
}

/// Number of TSNs in disjoint ranges.
pub(super) fn covered(runs: &[TsnRange]) -> usize {
    runs.iter()
        .map(|run| (run.end - run.start + 1) as usize)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(pairs: &[(u32, u32)]) -> Vec<TsnRange> {
        pairs
            .iter()
            .map(|&(start, end)| TsnRange { start, end })
            .collect()
    }

    #[test]
    fn blocks_that_overlap_or_come_out_of_order_are_put_right() {
        let block = |start, end| GapAckBlock { start, end };
        let mut list = Vec::new();
        read_blocks(
            [
                block(8, 9),
                block(2, 3),
                block(4, 5),
                block(9, 12),
                block(7, 6),
                block(1, 1),
            ]
            .into_iter(),
            &mut list,
        );
        assert_eq!(list, runs(&[(2, 5), (8, 12)]));
    }

    #[test]
    fn the_cumulative_point_passes_runs_and_cuts_them() {
        let mut list = runs(&[(2, 5), (8, 12), (20, 20)]);
        assert_eq!(covered(&list), 10);
        advance(&mut list, 9);
        assert_eq!(list, runs(&[(2, 3), (11, 11)]), "10 is not held");
        advance(&mut list, 2);
        assert_eq!(list, runs(&[(9, 9)]), "nor is 12");
        advance(&mut list, 11);
        assert_eq!(list, []);
    }
}
