//! Exactly-once check of messages: the source numbers the messages that the transport accepts, and
//! the sink records their delivery.

use std::collections::BTreeSet;

/// Message numbers of one association that were accepted and delivered. Memory depends on the
/// degree of reordering and not on the number of messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DuplicateCheck {
    accepted: u64,
    /// Number below which all messages were delivered.
    complete: u64,
    /// Message numbers above `complete` that were delivered out of order.
    ahead: BTreeSet<u64>,
    repeated: u64,
    unknown: u64,
}

impl DuplicateCheck {
    /// Number of the next message to be accepted.
    pub fn next(&self) -> u64 {
        self.accepted
    }

    /// Records that the transport accepted the next message.
    pub fn accept(&mut self) {
        self.accepted += 1;
    }

    /// Records that the message with this number was delivered.
    pub fn deliver(&mut self, number: u64) {
        if number >= self.accepted {
            self.unknown += 1;
        } else if number < self.complete || !self.ahead.insert(number) {
            self.repeated += 1;
        } else {
            while self.ahead.remove(&self.complete) {
                self.complete += 1;
            }
        }
    }

    /// Number of repeated deliveries, plus deliveries of messages that were never sent.
    pub fn repeated(&self) -> u64 {
        self.repeated + self.unknown
    }

    /// Number of messages that the transport accepted but never delivered.
    pub fn missing(&self) -> u64 {
        self.accepted - self.complete - self.ahead.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_counts_once_in_any_order() {
        let mut once = DuplicateCheck::default();
        for number in 0..5 {
            assert_eq!(once.next(), number);
            once.accept();
        }
        for number in [1, 0, 4, 1, 4, 0] {
            once.deliver(number);
        }
        assert_eq!(
            (once.repeated(), once.missing()),
            (3, 2),
            "2 and 3 are missing"
        );
        once.deliver(3);
        once.deliver(2);
        assert_eq!((once.repeated(), once.missing()), (3, 0));
        assert!(once.ahead.is_empty(), "nothing is kept that is complete");
    }

    #[test]
    fn a_message_that_was_not_sent_is_counted_as_duplicate() {
        let mut once = DuplicateCheck::default();
        once.accept();
        once.deliver(7);
        assert_eq!((once.repeated(), once.missing()), (1, 1));
    }
}
