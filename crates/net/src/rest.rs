//! Sockets that give errors where they should give packets.
//!
//! Some errors are of packets that were sent (ICMP), are told once, and what comes next is a packet: the socket is asked on. But one whose
//! interface is gone, or whose descriptor is closed, gives an error each time, for ever. It is asked seldom then, and for as
//! long as it is there: an interface may come back, and an association may have another path meanwhile.

use anabranch_transport::Nanos;
use anabranch_transport::time::{MILLISECOND, SECOND};

/// Errors in a row after which a socket rests.
const MOST_IN_ROW: u32 = 16;
/// How long at first; twice as long each time, and so long at most.
const FIRST: Nanos = MILLISECOND;
const LONGEST: Nanos = SECOND;

#[derive(Clone, Copy, Debug, Default)]
struct Rest {
    in_row: u32,
    /// It is not asked before.
    until: Nanos,
}

/// The sockets that rest, by number.
#[derive(Debug, Default)]
pub(crate) struct Rests {
    /// None: all of them work.
    of: Vec<Rest>,
}

impl Rests {
    /// Whether all work, so that nothing is to be asked.
    #[inline]
    pub fn are_none(&self) -> bool {
        self.of.is_empty()
    }

    /// Whether the socket of that number is not to be asked yet.
    pub fn rests(&self, number: usize, now: Nanos) -> bool {
        self.of.get(number).is_some_and(|it| now < it.until)
    }

    /// It gave an error. Whether it rests now.
    pub fn failed(&mut self, number: usize, now: Nanos) -> bool {
        if self.of.len() <= number {
            self.of.resize(number + 1, Rest::default());
        }
        let rest = &mut self.of[number];
        rest.in_row = rest.in_row.saturating_add(1);
        let Some(times) = rest.in_row.checked_sub(MOST_IN_ROW) else {
            return false;
        };
        let factor = 1_u64.checked_shl(times).unwrap_or(u64::MAX);
        rest.until = now + FIRST.saturating_mul(factor).min(LONGEST);
        true
    }

    /// It gave a packet, or has none.
    #[inline]
    pub fn worked(&mut self, number: usize) {
        if !self.of.is_empty() {
            self.forget(number);
        }
    }

    #[cold]
    fn forget(&mut self, number: usize) {
        if let Some(rest) = self.of.get_mut(number) {
            *rest = Rest::default();
        }
        if self.of.iter().all(|it| it.in_row == 0) {
            self.of.clear();
        }
    }

    /// When the first of those that rest is to be asked again.
    pub fn next(&self) -> Option<Nanos> {
        let resting = self.of.iter().filter(|it| it.in_row >= MOST_IN_ROW);
        resting.map(|it| it.until).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rests_are_longer_each_time_up_to_a_second_and_end_with_a_packet() {
        let mut rests = Rests::default();
        assert!((1..MOST_IN_ROW).all(|_| !rests.failed(1, 7)));
        assert_eq!(rests.next(), None);
        let mut now = 7;
        for millis in [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_000, 1_000] {
            assert!(rests.failed(1, now));
            let until = now + millis * MILLISECOND;
            assert_eq!(rests.next(), Some(until));
            assert!(rests.rests(1, until - 1) && !rests.rests(1, until));
            assert!(!rests.rests(0, now) && !rests.rests(2, now));
            now = until;
        }
        rests.worked(0);
        assert!(!rests.are_none());
        (0..100).for_each(|_| _ = rests.failed(1, now));
        assert_eq!(rests.next(), Some(now + LONGEST));
        rests.worked(1);
        assert!(rests.are_none() && rests.next().is_none());
        assert!(!rests.failed(1, now), "its count begins anew");
    }
}
