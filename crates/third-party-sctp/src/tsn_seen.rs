//! Records received TSNs in order to recognize duplicate DATA chunks, because the stacks do not
//! report them.

use std::collections::BTreeSet;

/// TSNs that were seen in one direction.
#[derive(Clone, Debug)]
pub(crate) struct SeenTsns {
    /// First TSN.
    first: u32,
    /// All chunks with lower numbers were seen. Numbers are distances from the first TSN.
    next: u64,
    /// Chunks seen above `next`.
    ahead: BTreeSet<u64>,
}

impl SeenTsns {
    pub fn new(first: u32) -> Self {
        Self {
            first,
            next: 0,
            ahead: BTreeSet::new(),
        }
    }

    pub fn first(&self) -> u32 {
        self.first
    }

    /// Records a TSN. Returns the number of its chunk, counted from 0, and whether it is seen for
    /// the first time.
    pub fn note(&mut self, tsn: u32) -> (u64, bool) {
        let number = u64::from(tsn.wrapping_sub(self.first));
        if number < self.next || !self.ahead.insert(number) {
            return (number, false);
        }
        while self.ahead.remove(&self.next) {
            self.next += 1;
        }
        (number, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_distinguished_from_their_repetitions_across_the_wrap() {
        let mut seen = SeenTsns::new(u32::MAX);
        assert_eq!(seen.note(u32::MAX), (0, true));
        assert_eq!(seen.note(1), (2, true));
        assert_eq!(seen.note(1), (2, false));
        assert_eq!(seen.note(0), (1, true));
        assert_eq!(seen.note(u32::MAX), (0, false));
        assert!(seen.ahead.is_empty(), "what is below needs no memory");
    }
}
