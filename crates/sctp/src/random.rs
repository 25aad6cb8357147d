//! Random number generator of an endpoint: tags, initial TSNs, nonces, jitter and cookie secrets.
//!
//! The creator of the endpoint provides the seed. With a secret seed the output is unpredictable,
//! as RFC 9260 §5.3.1 requires for verification tags; with a known seed a run is reproducible bit
//! by bit.

mod chacha12;

use std::fmt;

use chacha12::{BLOCK, BlockPair};

/// Number of words stored inline. Active and passive endpoints draw this number of words before
/// their first association is established.
const AT_FIRST: usize = 18;
/// One 32-bit word of the stream, in stream order.
type Word = [u8; 4];

/// Seeded random number generator: ChaCha12, with the same output as the crate `rand_chacha`. Only
/// two blocks are computed at a time, because an endpoint with one association draws only a few
/// words.
#[derive(Clone)]
pub(crate) struct Random {
    seed: [u8; 32],
    /// Number of words of the stream up to the end of the computed words.
    taken: u64,
    first: [Word; AT_FIRST],
    /// Computed words, after the words in `first` were drawn.
    later: Option<Box<BlockPair>>,
    /// Index of the next word (`at`), and number of computed words (`end`); both are 0 before the
    /// first words are computed.
    at: u8,
    end: u8,
}

impl fmt::Debug for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Random").finish_non_exhaustive()
    }
}

impl Random {
    /// Generator at the start of the stream of `seed`.
    pub(crate) fn new(seed: [u8; 32]) -> Self {
        Self::from(seed, 0)
    }

    /// Generator at the position after the first `words` words of the stream of `seed`.
    fn from(seed: [u8; 32], words: u64) -> Self {
        Self {
            seed,
            taken: words,
            first: [[0; 4]; AT_FIRST],
            later: None,
            at: 0,
            end: 0,
        }
    }

    /// Number of words drawn so far; no endpoint exists long enough to draw 2^64.
    fn drawn(&self) -> u64 {
        self.taken - u64::from(self.end - self.at)
    }

    /// Computed words, including those already drawn.
    #[inline(always)]
    fn words(&self) -> &[Word] {
        match &self.later {
            Some(later) => &later[..],
            None => &self.first,
        }
    }

    /// Computes the next two blocks. In the first block, words that were already drawn are skipped.
    #[inline(never)]
    fn refill(&mut self) {
        let skipped = self.taken as usize % BLOCK;
        let made = chacha12::two(&self.seed, self.taken / BLOCK as u64);
        (self.at, self.end) = if self.end > 0 {
            match &mut self.later {
                Some(later) => **later = made,
                None => self.later = Some(Box::new(made)),
            }
            (skipped as u8, made.len() as u8)
        } else {
            // The first words are stored inline, so that a generator from which only these are
            // drawn makes no allocation.
            let made = &made[skipped..];
            if let Some(first) = made.first_chunk() {
                self.first = *first;
            } else {
                self.first[..made.len()].copy_from_slice(made);
            }
            (0, made.len().min(AT_FIRST) as u8)
        };
        self.taken += u64::from(self.end - self.at);
    }

    /// Returns 32 secret bytes. Also used as the seed of an association's own generator, so that
    /// its numbers do not depend on other associations.
    pub(crate) fn key(&mut self) -> [u8; 32] {
        let mut key = [0; 32];
        self.fill(key.as_chunks_mut().0);
        key
    }

    fn fill(&mut self, mut words: &mut [Word]) {
        while !words.is_empty() {
            if self.at == self.end {
                self.refill();
            }
            let many = words.len().min(usize::from(self.end - self.at));
            let (now, later) = words.split_at_mut(many);
            now.copy_from_slice(&self.words()[usize::from(self.at)..][..many]);
            self.at += many as u8;
            words = later;
        }
    }

    /// Returns two secrets of 16 bytes each.
    pub(crate) fn keys(&mut self) -> [[u8; 16]; 2] {
        let mut keys = [[0; 16]; 2];
        self.fill(keys.as_flattened_mut().as_chunks_mut().0);
        keys
    }

    /// Returns a random 32-bit number.
    pub(crate) fn next_u32(&mut self) -> u32 {
        if self.at == self.end {
            self.refill();
        }
        let word = self.words()[usize::from(self.at)];
        self.at += 1;
        u32::from_le_bytes(word)
    }

    /// Returns a random 64-bit number.
    pub(crate) fn next_u64(&mut self) -> u64 {
        let low = self.next_u32();
        u64::from(self.next_u32()) << 32 | u64::from(low)
    }

    /// Returns a verification tag: any number except 0, which means "none" (RFC 9260 §3.3.2,
    /// §5.3.1).
    pub(crate) fn tag(&mut self) -> u32 {
        loop {
            let tag = self.next_u32();
            if tag != 0 {
                return tag;
            }
        }
    }
}

/// Generator that draws only a few numbers over a long time. It stores only its position, in less
/// than half the memory of [`Random`].
#[derive(Clone, Debug)]
pub(crate) struct CompactRandom {
    seed: [u8; 32],
    /// Number of words drawn so far; no association exists long enough to draw 2^64.
    drawn: u64,
    /// Next 64-bit number, if it was already computed. An association draws this number as soon as
    /// it is established; to compute the number's block again at that time would take a hundred
    /// times as long as to read the stored number.
    next: Option<u64>,
}

impl CompactRandom {
    /// Generator that continues the stream of `random`.
    pub(crate) fn of(random: &mut Random) -> Self {
        Self {
            seed: random.seed,
            drawn: random.drawn(),
            next: Some(random.next_u64()),
        }
    }

    /// Calls `draw` with the stream at the current position, and advances the position.
    pub(crate) fn draw<T>(&mut self, draw: impl FnOnce(&mut Random) -> T) -> T {
        let mut random = Random::from(self.seed, self.drawn);
        let drawn = draw(&mut random);
        self.drawn = random.drawn();
        self.next = None;
        drawn
    }

    /// Returns a random 64-bit number.
    pub(crate) fn next_u64(&mut self) -> u64 {
        match self.next.take() {
            Some(number) => {
                self.drawn += 2;
                number
            }
            None => self.draw(Random::next_u64),
        }
    }

    /// Returns a random duration between half of `centre` and one and a half times `centre` (the
    /// jitter of RFC 9260 §8.3), in whole nanoseconds.
    pub(crate) fn jittered_by_half(&mut self, centre: u64) -> u64 {
        match centre {
            0 => 0,
            // The modulo bias is below 2^-20 for durations under 5 hours.
            _ => centre - centre / 2 + self.next_u64() % centre,
        }
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha12Rng;
    use rand_core::{RngCore, SeedableRng};

    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_stream_and_a_fork_leaves_it_alone() {
        let mut one = Random::new([7; 32]);
        let mut two = Random::new([7; 32]);
        let mut fork = Random::new(two.key());
        one.key();
        for _ in 0..100 {
            fork.next_u64();
        }
        assert_eq!(one.next_u64(), two.next_u64());
        assert_ne!(
            Random::new([8; 32]).next_u64(),
            Random::new([7; 32]).next_u64()
        );
    }

    #[test]
    fn the_stream_is_that_of_the_generator() {
        let mut ours = Random::new([7; 32]);
        let mut generator = ChaCha12Rng::from_seed([7; 32]);
        for turn in 0..500 {
            match turn % 4 {
                0 => assert_eq!(ours.next_u32(), generator.next_u32()),
                1 => assert_eq!(ours.next_u64(), generator.next_u64()),
                2 => {
                    let mut key = [0; 32];
                    generator.fill_bytes(&mut key);
                    assert_eq!(ours.key(), key);
                }
                _ => assert_eq!(u128::from(ours.drawn()), generator.get_word_pos()),
            }
        }
    }

    /// A generator can start at any position of the stream, and yields the same words across every
    /// boundary of computed blocks.
    #[test]
    fn the_stream_is_the_same_from_each_of_its_words_on() {
        let mut generator = ChaCha12Rng::from_seed([3; 32]);
        let words: Vec<u32> = (0..600).map(|_| generator.next_u32()).collect();
        // The first words must not change, because simulated times depend on them.
        assert_eq!(words[..2], [2_183_155_846, 4_285_432_903]);
        for begin in 0..200 {
            let mut random = Random::from([3; 32], begin as u64);
            for (at, &word) in words[begin..][..350].iter().enumerate() {
                assert_eq!(random.drawn(), (begin + at) as u64);
                assert_eq!(random.next_u32(), word, "word {at} from {begin} on");
            }
        }
        // The words are drawn in pieces of different lengths that cross the boundaries.
        for piece in 1..70 {
            let mut random = Random::new([3; 32]);
            for expected in words.chunks_exact(piece) {
                let mut drawn = vec![[0; 4]; piece];
                random.fill(&mut drawn);
                let drawn: Vec<u32> = drawn.into_iter().map(u32::from_le_bytes).collect();
                assert_eq!(drawn, expected, "pieces of {piece}");
            }
        }
    }

    #[test]
    fn jitter_stays_within_half_of_the_centre() {
        let mut random = CompactRandom::of(&mut Random::new([1; 32]));
        for _ in 0..1_000 {
            let span = random.jittered_by_half(1_000);
            assert!((500..1_500).contains(&span), "{span}");
        }
        assert_eq!(random.jittered_by_half(0), 0);
    }

    #[test]
    fn a_compact_generator_continues_where_the_original_stopped() {
        let mut one = Random::new([7; 32]);
        let mut kept = CompactRandom::of(&mut one.clone());
        for number in 0..200 {
            // After a 32-bit number, the next 64-bit number spans two blocks.
            if number % 3 == 0 {
                assert_eq!(kept.draw(Random::next_u32), one.next_u32());
            }
            assert_eq!(kept.next_u64(), one.next_u64());
            // The second number is drawn after all computed words were used.
            assert_eq!(kept.next_u64(), one.next_u64());
            if number % 2 == 0 {
                kept = CompactRandom::of(&mut one.clone());
            }
        }
    }
}
