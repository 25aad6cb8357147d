//! Send times of the segments in flight, for controllers that need a round-trip time for every
//! acknowledgement.

use std::collections::VecDeque;
use std::ops::Range;

use anabranch_transport::Nanos;

/// A segment that was sent and not acknowledged cumulatively.
#[derive(Clone, Copy, Debug)]
struct Sent {
    /// Offset after the segment.
    end: u64,
    at: Nanos,
    /// The segment cannot be used for measurements, because it was retransmitted or already
    /// reported.
    void: bool,
}

/// Segments in flight, in ascending order of offset. Empty if the controller does not need them.
#[derive(Debug, Default)]
pub(crate) struct SentTimes {
    sent: VecDeque<Sent>,
}

impl SentTimes {
    /// Records that `range` was sent at `now`; `again` marks a retransmission.
    pub(super) fn on_sent(&mut self, now: Nanos, range: Range<u64>, again: bool) {
        if again {
            self.void(&range);
        } else {
            self.sent.push_back(Sent {
                end: range.end,
                at: now,
                void: false,
            });
        }
    }

    /// Indices of the segments whose end is within `range`.
    fn indices(&self, range: &Range<u64>) -> Range<usize> {
        let from = self.sent.partition_point(|sent| sent.end <= range.start);
        from..self.sent.partition_point(|sent| sent.end <= range.end)
    }

    fn void(&mut self, range: &Range<u64>) {
        let indices = self.indices(range);
        self.sent
            .range_mut(indices)
            .for_each(|sent| sent.void = true);
    }

    /// Send time of the newest segment that an acknowledgement of `una` with these blocks reports
    /// for the first time; `None` if it reports no such segment, or only retransmitted ones.
    pub(super) fn on_ack(&mut self, una: u64, blocks: &[Range<u64>]) -> Option<Nanos> {
        let acknowledged = self.sent.partition_point(|sent| sent.end <= una);
        let mut newest = None;
        for sent in self.sent.drain(..acknowledged) {
            newest = newest.max((!sent.void).then_some(sent.at));
        }
        for block in blocks {
            let indices = self.indices(block);
            for sent in self.sent.range_mut(indices).filter(|sent| !sent.void) {
                newest = newest.max(Some(sent.at));
                sent.void = true;
            }
        }
        newest
    }

    /// Discards all send times because they are no longer needed.
    pub(super) fn clear(&mut self) {
        self.sent.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn four() -> SentTimes {
        let mut times = SentTimes::default();
        for segment in 0..4 {
            times.on_sent(segment * 10, segment * 100..segment * 100 + 100, false);
        }
        times
    }

    #[test]
    fn the_newest_of_those_newly_reported_counts_once() {
        let mut times = four();
        let reported = 200..400;
        assert_eq!(times.on_ack(100, &[]), Some(0));
        assert_eq!(times.on_ack(100, std::slice::from_ref(&reported)), Some(30));
        assert_eq!(times.on_ack(100, std::slice::from_ref(&reported)), None);
        // The gap is filled: data that was reported before must not count as new.
        assert_eq!(times.on_ack(400, &[]), Some(10));
    }

    #[test]
    fn a_retransmission_gives_no_rtt() {
        let mut times = four();
        times.on_sent(50, 0..100, true);
        assert_eq!(times.on_ack(100, &[]), None);
        assert_eq!(times.on_ack(300, &[]), Some(20));
        times.clear();
        assert_eq!(times.on_ack(400, &[]), None);
    }
}
