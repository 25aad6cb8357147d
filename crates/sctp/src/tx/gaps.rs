//! Gap Ack Blocks as the sender keeps them: what changed from one SACK to the next, without looking at every TSN.

use anabranch_wire::chunk::GapAckBlock;

/// A run of TSNs as offsets from the cumulative point; both ends belong to it, `0 < start <= end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub start: u32,
    pub end: u32,
}

/// Reads a SACK's blocks into `runs`: ascending, apart from each other by at least one TSN. Blocks that make no sense
/// (end before start, or touching the cumulative point) are left out.
pub(super) fn read_blocks(blocks: impl Iterator<Item = GapAckBlock>, runs: &mut Vec<Run>) {
    runs.clear();
    let mut in_order = true;
    for block in blocks.filter(|block| block.start >= 2 && block.end >= block.start) {
        let run = Run {
            start: block.start.into(),
            end: block.end.into(),
        };
        in_order &= runs
            .last()
            .is_none_or(|last: &Run| last.end + 1 < run.start);
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

/// Moves `runs` to a cumulative point `advance` further on; what it passes is forgotten.
pub(super) fn advance(runs: &mut Vec<Run>, advance: u32) {
    if advance == 0 {
        return;
    }
    runs.retain_mut(|run| {
        if run.end <= advance {
            return false;
        }
        run.start = run.start.saturating_sub(advance).max(1);
        run.end -= advance;
        true
    });
}

/// Calls `found` with every run of TSNs that is in `these` and not in `those`; both ascending and apart.
pub(super) fn difference(these: &[Run], those: &[Run], mut found: impl FnMut(Run)) {
    let mut those = those.iter().copied().peekable();
    for run in these {
        let mut start = run.start;
        while let Some(other) = those.peek().copied() {
            if other.end < start {
                those.next();
                continue;
            }
            if other.start > run.end {
                break;
            }
            if other.start > start {
                found(Run {
                    start,
                    end: other.start - 1,
                });
            }
            start = other.end + 1;
            if start > run.end {
                break;
            }
            those.next();
        }
        if start <= run.end {
            found(Run {
                start,
                end: run.end,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(pairs: &[(u32, u32)]) -> Vec<Run> {
        pairs
            .iter()
            .map(|&(start, end)| Run { start, end })
            .collect()
    }

    fn minus(these: &[(u32, u32)], those: &[(u32, u32)]) -> Vec<(u32, u32)> {
        let mut found = Vec::new();
        difference(&runs(these), &runs(those), |run| {
            found.push((run.start, run.end))
        });
        found
    }

    #[test]
    fn differences_by_hand() {
        assert_eq!(minus(&[(2, 5)], &[]), [(2, 5)]);
        assert_eq!(minus(&[(2, 5)], &[(2, 5)]), []);
        assert_eq!(minus(&[(2, 6), (8, 9)], &[(2, 5)]), [(6, 6), (8, 9)]);
        assert_eq!(
            minus(&[(2, 20)], &[(4, 5), (9, 9), (20, 30)]),
            [(2, 3), (6, 8), (10, 19)]
        );
        assert_eq!(minus(&[(2, 3), (5, 6), (8, 9)], &[(1, 100)]), []);
        assert_eq!(minus(&[(2, 3), (5, 6)], &[(3, 5)]), [(2, 2), (6, 6)]);
    }

    /// Against sets, over every pair of subsets of eight TSNs.
    #[test]
    fn differences_agree_with_sets() {
        let as_runs = |set: u32| {
            let mut list: Vec<Run> = Vec::new();
            for tsn in (1..=8).filter(|tsn| set >> tsn & 1 == 1) {
                match list.last_mut() {
                    Some(last) if last.end + 1 == tsn => last.end = tsn,
                    _ => list.push(Run {
                        start: tsn,
                        end: tsn,
                    }),
                }
            }
            list
        };
        for these in (0..512).step_by(2) {
            for those in (0..512).step_by(2) {
                let mut found = 0u32;
                difference(&as_runs(these), &as_runs(those), |run| {
                    (run.start..=run.end).for_each(|tsn| found |= 1 << tsn);
                });
                assert_eq!(found, these & !those, "{these:b} - {those:b}");
            }
        }
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
        advance(&mut list, 9);
        assert_eq!(list, runs(&[(1, 3), (11, 11)]));
        advance(&mut list, 11);
        assert_eq!(list, []);
    }
}
