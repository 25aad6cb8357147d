//! Unordered messages that the peer has given up, and of which pieces may still be on their way (RFC 8260 §2.3.1).
//!
//! Ordered ones are behind the number that is next. Unordered ones have no such number: a position that came late would begin a message
//! which nothing completes. It would take room in the buffer for ever, and no reset of its stream would be performed.

use std::collections::BTreeMap;

/// The most streams that are remembered; beyond it some are forgotten, so that a peer cannot fill the memory with their list.
const MOST: usize = 256;
/// A number so far behind is forgotten: numbers wrap, and those of later messages would seem to be behind it.
const FAR: u32 = 1 << 30;

/// By stream, the number of the last unordered message that was given up. A sender ends or gives up a message before it begins another of
/// the stream (RFC 8260 §2.2.2), so that what is no later is given up or complete.
#[derive(Debug, Default)]
pub(super) struct AbandonedMessages {
    last: BTreeMap<u16, u32>,
}

impl AbandonedMessages {
    /// The messages of `stream` up to number `mid` are given up.
    pub fn note(&mut self, stream: u16, mid: u32) {
        if self.has(stream, mid) {
            return;
        }
        self.last.insert(stream, mid);
        if self.last.len() > MOST {
            self.last.pop_first();
        }
    }

    /// Whether the message of that number was given up.
    pub fn has(&mut self, stream: u16, mid: u32) -> bool {
        let Some(last) = self.last.get(&stream) else {
            return false;
        };
        let ahead = mid.wrapping_sub(*last);
        if (FAR..=u32::MAX / 2).contains(&ahead) {
            self.last.remove(&stream);
        }
        ahead == 0 || ahead > u32::MAX / 2
    }

    /// The numbers of `stream` begin with 0 again.
    pub fn begin_anew(&mut self, stream: u16) {
        self.last.remove(&stream);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_later_than_the_last_is_gone_across_the_wrap() {
        let mut gone = AbandonedMessages::default();
        assert!(!gone.has(3, 0));
        gone.note(3, u32::MAX);
        gone.note(3, 1);
        gone.note(3, u32::MAX);
        let has = [u32::MAX - 1, u32::MAX, 0, 1, 2, FAR].map(|mid| gone.has(3, mid));
        assert_eq!(has, [true, true, true, true, false, false]);
        assert!(!gone.has(4, 1), "another stream's");
        gone.begin_anew(3);
        assert!(!gone.has(3, 0));
    }

    /// Without a message given up for 2^31 others, none of those is taken for one.
    #[test]
    fn a_last_that_is_far_behind_is_forgotten() {
        let mut gone = AbandonedMessages::default();
        gone.note(0, 7);
        for step in 0..16_u32 {
            assert!(
                !gone.has(0, step.wrapping_mul(1 << 29).wrapping_add(8)),
                "{step}"
            );
        }
    }

    #[test]
    fn few_streams_are_remembered() {
        let mut gone = AbandonedMessages::default();
        (0..=u16::MAX).for_each(|stream| gone.note(stream, 0));
        assert_eq!(gone.last.len(), MOST);
    }
}
