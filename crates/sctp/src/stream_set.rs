//! Set of stream numbers.

use std::mem::size_of;

/// Number of streams per word.
const WORD: usize = u64::BITS as usize;
const _: () = assert!((u16::MAX as usize / WORD + 1) * size_of::<u64>() == 8 << 10);

/// Bit set of streams, allocated up to the highest member; at most 8 KiB. A peer can list hundreds
/// of streams in a packet, so a linear search for each stream would be expensive. An empty set has
/// no allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StreamSet {
    words: Vec<u64>,
    len: usize,
}

/// Index of a stream's word, and mask of its bit.
fn place(stream: u16) -> (usize, u64) {
    let stream = usize::from(stream);
    (stream / WORD, 1 << (stream % WORD))
}

impl StreamSet {
    #[inline]
    pub(crate) fn contains(&self, stream: u16) -> bool {
        let (word, bit) = place(stream);
        self.words.get(word).is_some_and(|it| it & bit != 0)
    }

    #[inline]
    pub(crate) fn insert(&mut self, stream: u16) {
        let (word, bit) = place(stream);
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let word = &mut self.words[word];
        self.len += usize::from(*word & bit == 0);
        *word |= bit;
    }

    #[inline]
    pub(crate) fn remove(&mut self, stream: u16) {
        let (word, bit) = place(stream);
        let Some(word) = self.words.get_mut(word).filter(|it| **it & bit != 0) else {
            return;
        };
        *word ^= bit;
        self.len -= 1;
        if self.len == 0 {
            self.words = Vec::new();
        }
    }

    /// Number of streams in the set.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::test_rng::test_rng;

    #[test]
    fn it_is_a_set_and_takes_no_space_while_it_is_empty() {
        let mut random = test_rng(3);
        let (mut set, mut other) = (StreamSet::default(), BTreeSet::new());
        let edges = [0, 63, 64, 127, 128, 65_471, 65_472, 65_535];
        for _ in 0..20_000 {
            let stream = edges[random(8) as usize] ^ random(2) as u16;
            if random(2) == 0 {
                set.insert(stream);
                other.insert(stream);
            } else {
                set.remove(stream);
                other.remove(&stream);
            }
            assert_eq!((set.len(), set.is_empty()), (other.len(), other.is_empty()));
            for stream in edges {
                assert_eq!(set.contains(stream), other.contains(&stream));
            }
            assert!(!set.is_empty() || set.words.capacity() == 0);
            assert!(set.words.len() <= 1024);
        }
    }
}
