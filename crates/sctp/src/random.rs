//! The endpoint's own generator: tags, initial TSNs, nonces, jitter and cookie secrets.
//!
//! It is seeded by whoever makes the endpoint. With a secret seed its output cannot be guessed, as RFC 9260 §5.3.1 asks
//! of verification tags; with a known seed a run repeats itself to the bit.

use rand_chacha::ChaCha12Rng;
use rand_core::{RngCore, SeedableRng};

/// A seeded stream of numbers that an outsider cannot predict.
#[derive(Clone, Debug)]
pub(crate) struct Random(ChaCha12Rng);

impl Random {
    /// The stream of `seed`.
    pub(crate) fn new(seed: [u8; 32]) -> Self {
        Self(ChaCha12Rng::from_seed(seed))
    }

    /// 32 secret bytes; also the seed of a generator of its own for an association, so that what one association draws never moves another's
    /// numbers.
    pub(crate) fn key(&mut self) -> [u8; 32] {
        let mut key = [0; 32];
        self.0.fill_bytes(&mut key);
        key
    }

    /// Two secrets of 16 bytes.
    pub(crate) fn keys(&mut self) -> [[u8; 16]; 2] {
        let mut keys = [[0; 16]; 2];
        self.0.fill_bytes(keys.as_flattened_mut());
        keys
    }

    /// Any number.
    pub(crate) fn next_u32(&mut self) -> u32 {
        self.0.next_u32()
    }

    /// Any number.
    pub(crate) fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A verification tag: any number but 0, which stands for "none" (RFC 9260 §3.3.2, §5.3.1).
    pub(crate) fn tag(&mut self) -> u32 {
        loop {
            let tag = self.next_u32();
            if tag != 0 {
                return tag;
            }
        }
    }
}

/// A stream for who draws seldom and is kept for long: where it is, in an eighth of the memory of who is ready to go on.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    seed: [u8; 32],
    /// Words drawn so far; no association lives to draw 2^64.
    drawn: u64,
    /// What the next two words are, where they were at hand: to find the place again and make its block costs a hundred times as much,
    /// and an association draws them as soon as it is up.
    next: Option<u64>,
}

impl Kept {
    /// The rest of the stream.
    pub(crate) fn of(random: &mut Random) -> Self {
        Self {
            seed: random.0.get_seed(),
            drawn: random.0.get_word_pos() as u64,
            next: Some(random.next_u64()),
        }
    }

    /// Lets `draw` go on with the stream.
    pub(crate) fn draw<T>(&mut self, draw: impl FnOnce(&mut Random) -> T) -> T {
        let mut random = Random::new(self.seed);
        random.0.set_word_pos(self.drawn.into());
        let drawn = draw(&mut random);
        self.drawn = random.0.get_word_pos() as u64;
        self.next = None;
        drawn
    }

    /// Any number.
    pub(crate) fn next_u64(&mut self) -> u64 {
        match self.next.take() {
            Some(number) => {
                self.drawn += 2;
                number
            }
            None => self.draw(Random::next_u64),
        }
    }

    /// A span of `centre` give or take half of it (the jitter of RFC 9260 §8.3), in whole nanoseconds.
    pub(crate) fn jittered_by_half(&mut self, centre: u64) -> u64 {
        match centre {
            0 => 0,
            // The modulo bias is below 2^-20 for every span shorter than 5 hours.
            _ => centre - centre / 2 + self.next_u64() % centre,
        }
    }
}

#[cfg(test)]
mod tests {
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
    fn jitter_stays_within_half_of_the_centre() {
        let mut random = Kept::of(&mut Random::new([1; 32]));
        for _ in 0..1_000 {
            let span = random.jittered_by_half(1_000);
            assert!((500..1_500).contains(&span), "{span}");
        }
        assert_eq!(random.jittered_by_half(0), 0);
    }

    #[test]
    fn what_is_kept_goes_on_where_it_was() {
        let mut one = Random::new([7; 32]);
        let mut kept = Kept::of(&mut one.clone());
        for number in 0..200 {
            // A number of 64 bits then lies across the blocks of the stream.
            if number % 3 == 0 {
                assert_eq!(kept.draw(Random::next_u32), one.next_u32());
            }
            assert_eq!(kept.next_u64(), one.next_u64());
            // Once more, with nothing at hand.
            assert_eq!(kept.next_u64(), one.next_u64());
            if number % 2 == 0 {
                kept = Kept::of(&mut one.clone());
            }
        }
    }
}
