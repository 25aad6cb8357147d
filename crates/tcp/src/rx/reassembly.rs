//! Reassembly of received bytes (RFC 9293 §3.10.7.4), and creation of the blocks of the SACK option
//! (RFC 2018 §4).

use std::collections::VecDeque;
use std::ops::Range;

use bytes::{Buf, Bytes};

/// Result of [`Reassembly::insert`]: how the data was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Insertion {
    /// The data was next in order. `filled` bytes became readable, which is more than the segment
    /// carried if a gap closed.
    InOrder {
        /// Number of bytes that became readable.
        filled: u64,
        /// A gap existed before the data was inserted.
        was_gap: bool,
    },
    /// The data lies after a gap and was buffered.
    OutOfOrder,
    /// All of the data had been received before.
    Duplicate,
    /// The data lies after a gap, and the limit of buffered slices is reached.
    Refused,
}

/// Maximum number of blocks in a SACK option (RFC 2018 §3).
pub(crate) const MAX_BLOCKS: usize = 4;
/// Maximum number of recently reported blocks that the receiver remembers.
const MAX_REMEMBERED: usize = 8;

/// Received data that is not next in order, and the blocks that describe it.
#[derive(Clone, Debug)]
pub(crate) struct Reassembly {
    /// Offset of the next expected byte, `RCV.NXT`.
    next: u64,
    /// Data after the gap at `next`, in ascending order without overlap.
    waiting: VecDeque<(u64, Bytes)>,
    /// Contiguous ranges of `waiting`, in ascending order without overlap.
    blocks: Vec<Range<u64>>,
    /// Last reported blocks, most recent first.
    recent: VecDeque<Range<u64>>,
    remember: usize,
    max_pieces: usize,
    waiting_bytes: u64,
}

impl Reassembly {
    /// Creates a queue that expects the offset `next`. It remembers `remember` recent blocks (at
    /// most 8) and buffers up to `max_pieces` out-of-order slices.
    pub(crate) fn new(next: u64, remember: usize, max_pieces: usize) -> Self {
        Self {
            next,
            waiting: VecDeque::new(),
            blocks: Vec::new(),
            recent: VecDeque::with_capacity(MAX_REMEMBERED + 1),
            remember: remember.clamp(1, MAX_REMEMBERED),
            max_pieces,
            waiting_bytes: 0,
        }
    }

    /// Offset of the next expected byte.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Skips the sequence number of a SYN or FIN at [`Reassembly::next`], which carries no data.
    pub(crate) fn skip_one(&mut self) {
        self.next += 1;
    }

    /// Number of bytes buffered after a gap.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.waiting_bytes
    }

    /// Whether data is missing before data that was received.
    pub(crate) fn has_gap(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Accepts the data of `range` without storing it, if it is next in order and no data is
    /// buffered after it. `None` means that the data must be [inserted](Reassembly::insert)
    /// instead.
    #[inline]
    pub(crate) fn pass(&mut self, range: &Range<u64>) -> Option<Insertion> {
        if range.start > self.next || range.end <= self.next || self.has_gap() {
            return None;
        }
        let filled = range.end - self.next;
        self.next = range.end;
        Some(Insertion::InOrder {
            filled,
            was_gap: false,
        })
    }

    /// Like [`Reassembly::pass`], for the next `length` bytes; returns whether they were accepted.
    #[inline(always)]
    pub(crate) fn pass_next(&mut self, length: u64) -> bool {
        if self.has_gap() {
            return false;
        }
        self.next += length;
        true
    }

    /// Accepts the data at offset `start`, already trimmed to the window, and appends to `ready`
    /// the data that became readable.
    pub(crate) fn insert(
        &mut self,
        start: u64,
        mut data: Bytes,
        ready: &mut VecDeque<Bytes>,
    ) -> Insertion {
        let end = start + data.len() as u64;
        if end <= self.next {
            return Insertion::Duplicate;
        }
        if start > self.next {
            return self.keep(start, data);
        }
        let was_gap = self.has_gap();
        let before = self.next;
        data.advance((self.next - start) as usize);
        ready.push_back(data);
        self.next = end;
        if was_gap {
            self.join(ready);
        }
        Insertion::InOrder {
            filled: self.next - before,
            was_gap,
        }
    }

    /// Delivers the buffered data that is now next in order.
    fn join(&mut self, ready: &mut VecDeque<Bytes>) {
        while let Some((start, _)) = self.waiting.front()
            && *start <= self.next
        {
            let Some((start, data)) = self.waiting.pop_front() else {
                break;
            };
            self.waiting_bytes -= data.len() as u64;
            let end = start + data.len() as u64;
            if end > self.next {
                ready.push_back(data.slice((self.next - start) as usize..));
                self.next = end;
            }
        }
        let next = self.next;
        self.blocks.retain(|block| block.end > next);
        self.recent.retain(|block| block.end > next);
    }

    /// Buffers data after a gap, except the parts that are already buffered.
    fn keep(&mut self, start: u64, data: Bytes) -> Insertion {
        let end = start + data.len() as u64;
        let mut at = start;
        let mut index = self
            .waiting
            .partition_point(|(from, held)| from + held.len() as u64 <= start);
        let mut news = false;
        while at < end {
            let held = self
                .waiting
                .get(index)
                .map(|(from, held)| *from..*from + held.len() as u64);
            let hole_end = held.as_ref().map_or(end, |held| held.start.min(end));
            if at < hole_end {
                if self.waiting.len() >= self.max_pieces {
                    if news {
                        break;
                    }
                    return Insertion::Refused;
                }
                let part = data.slice((at - start) as usize..(hole_end - start) as usize);
                self.waiting_bytes += part.len() as u64;
                self.waiting.insert(index, (at, part));
                news = true;
                index += 1;
                at = hole_end;
            }
            if let Some(held) = held
                && at < end
            {
                at = at.max(held.end);
                index += 1;
            }
        }
        self.report(start..at.min(end).max(start + 1));
        if news {
            Insertion::OutOfOrder
        } else {
            Insertion::Duplicate
        }
    }

    /// Merges a received range into its block, which becomes the most recent one.
    fn report(&mut self, arrived: Range<u64>) {
        let first = self
            .blocks
            .partition_point(|block| block.end < arrived.start);
        let last = first + self.blocks[first..].partition_point(|block| block.start <= arrived.end);
        let mut merged = arrived;
        if first < last {
            merged.start = merged.start.min(self.blocks[first].start);
            merged.end = merged.end.max(self.blocks[last - 1].end);
            self.blocks[first] = merged.clone();
            self.blocks.drain(first + 1..last);
        } else {
            self.blocks.insert(first, merged.clone());
        }
        self.recent
            .retain(|block| block.start < merged.start || block.end > merged.end);
        self.recent.push_front(merged);
        self.recent.truncate(self.remember);
    }

    /// Whether a block exists for the SACK option.
    #[inline]
    pub(crate) fn has_sack_blocks(&self) -> bool {
        !self.recent.is_empty()
    }

    /// Blocks for the SACK option, most recent first (RFC 2018 §4).
    pub(crate) fn sack_blocks(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.recent.iter().take(MAX_BLOCKS).cloned()
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init)] // a list with one range is intended
mod tests {
    use super::*;

    struct Rig {
        queue: Reassembly,
        ready: VecDeque<Bytes>,
    }

    impl Rig {
        fn new(remember: usize) -> Self {
            Self {
                queue: Reassembly::new(0, remember, 64),
                ready: VecDeque::new(),
            }
        }

        /// Inserts data whose byte at offset `i` is `i`, so that deliveries can be checked.
        fn arrive(&mut self, range: Range<u64>) -> Insertion {
            let data: Vec<u8> = range.clone().map(|i| i as u8).collect();
            self.queue.insert(range.start, data.into(), &mut self.ready)
        }

        fn delivered(&self) -> Vec<u8> {
            self.ready
                .iter()
                .flat_map(|bytes| bytes.iter().copied())
                .collect()
        }

        fn blocks(&self) -> Vec<Range<u64>> {
            self.queue.sack_blocks().collect()
        }
    }

    #[test]
    fn gaps_close_and_data_is_delivered_once() {
        let mut rig = Rig::new(3);
        assert_eq!(
            rig.arrive(0..10),
            Insertion::InOrder {
                filled: 10,
                was_gap: false
            }
        );
        assert_eq!(rig.arrive(20..30), Insertion::OutOfOrder);
        assert_eq!(rig.arrive(40..50), Insertion::OutOfOrder);
        assert_eq!(rig.arrive(25..45), Insertion::OutOfOrder);
        assert_eq!(rig.queue.waiting_bytes(), 30);
        assert_eq!(rig.arrive(22..48), Insertion::Duplicate);
        assert_eq!(
            rig.arrive(5..25),
            Insertion::InOrder {
                filled: 40,
                was_gap: true
            }
        );
        assert_eq!(rig.arrive(0..50), Insertion::Duplicate);
        assert_eq!(rig.delivered(), (0..50).collect::<Vec<u8>>());
        assert_eq!(
            (
                rig.queue.next(),
                rig.queue.has_gap(),
                rig.queue.waiting_bytes()
            ),
            (50, false, 0)
        );
    }

    /// RFC 2018 §4: the block with the latest segment comes first, and then the blocks reported
    /// last. This receiver remembers up to three.
    #[test]
    fn blocks_are_reported_by_recency() {
        let mut rig = Rig::new(3);
        rig.arrive(10..20);
        rig.arrive(30..40);
        assert_eq!(rig.blocks(), [30..40, 10..20]);
        rig.arrive(20..25);
        assert_eq!(rig.blocks(), [10..25, 30..40]);
        rig.arrive(50..60);
        rig.arrive(70..80);
        assert_eq!(
            rig.blocks(),
            [70..80, 50..60, 10..25],
            "30..40 is forgotten"
        );
        rig.arrive(12..14);
        assert_eq!(
            rig.blocks(),
            [10..25, 70..80, 50..60],
            "a duplicate's block comes first again"
        );
        rig.arrive(0..10);
        assert_eq!(rig.blocks(), [70..80, 50..60]);
        rig.arrive(25..50);
        assert_eq!(
            (rig.blocks().as_slice(), rig.queue.next()),
            (&[70..80][..], 60)
        );
    }

    /// Accepting data without storing it must give the same result as inserting it, and is possible
    /// only without a gap before or after the data.
    #[test]
    fn data_passes_only_if_it_is_next() {
        let mut rig = Rig::new(3);
        let in_order = |filled| Insertion::InOrder {
            filled,
            was_gap: false,
        };
        assert_eq!(rig.queue.pass(&(0..10)), Some(in_order(10)));
        assert_eq!(
            rig.queue.pass(&(5..12)),
            Some(in_order(2)),
            "its end is new"
        );
        assert_eq!(rig.queue.pass(&(4..12)), None, "all of it is old");
        assert_eq!(rig.queue.pass(&(13..20)), None, "one byte is missing");
        assert_eq!((rig.queue.next(), rig.queue.has_sack_blocks()), (12, false));
        rig.arrive(20..30);
        assert_eq!(rig.queue.pass(&(12..20)), None, "20 to 30 wait behind it");
        assert!(rig.queue.has_sack_blocks());
        rig.arrive(12..20);
        assert_eq!((rig.queue.next(), rig.queue.has_sack_blocks()), (30, false));
    }

    #[test]
    fn pieces_are_bounded() {
        let mut rig = Rig::new(3);
        for piece in 0..64 {
            assert_eq!(
                rig.arrive(1 + 3 * piece..2 + 3 * piece),
                Insertion::OutOfOrder
            );
        }
        assert_eq!(rig.arrive(200..201), Insertion::Refused);
        assert_eq!(rig.queue.waiting_bytes(), 64);
        assert_eq!(
            rig.arrive(0..1),
            Insertion::InOrder {
                filled: 2,
                was_gap: true
            }
        );
        assert_eq!(rig.arrive(200..201), Insertion::OutOfOrder);
    }
}
