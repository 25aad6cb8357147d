//! The replay window (RFC 9147 §4.5.1).

/// Replay window: the set of accepted sequence numbers. Numbers older than the window are refused,
/// and every other number is accepted once.
#[derive(Clone, Debug)]
pub struct ReplayWindow {
    /// Ring buffer of bits, indexed by the sequence number modulo its size.
    bits: Box<[u64]>,
    /// The number after the highest accepted one.
    next: u64,
}

impl ReplayWindow {
    /// Minimum size of a window.
    pub const MIN_SIZE: usize = 64;
    /// Maximum size of a window: half of the range of a 16-bit sequence number.
    pub const MAX_SIZE: usize = 1 << 15;

    /// Creates a window of `size` numbers, rounded up to a multiple of 64, between
    /// [`Self::MIN_SIZE`] and [`Self::MAX_SIZE`].
    pub fn new(size: usize) -> Self {
        let words = size.clamp(Self::MIN_SIZE, Self::MAX_SIZE).div_ceil(64);
        Self {
            bits: vec![0; words].into_boxed_slice(),
            next: 0,
        }
    }

    /// The number after the highest accepted one.
    pub fn next(&self) -> u64 {
        self.next
    }

    fn size(&self) -> u64 {
        64 * self.bits.len() as u64
    }

    fn place(&self, number: u64) -> (usize, u64) {
        let at = number % self.size();
        ((at / 64) as usize, 1 << (at % 64))
    }

    /// Returns true if `number` was not accepted yet, and is not older than the window.
    pub fn is_new(&self, number: u64) -> bool {
        if number >= self.next {
            return true;
        }
        let (word, bit) = self.place(number);
        self.next - number <= self.size() && self.bits[word] & bit == 0
    }

    /// Accepts `number`, which [is new](Self::is_new) and whose record was authenticated.
    pub fn take(&mut self, number: u64) {
        if number >= self.next {
            // Clears the bits that leave the window, because they are reused for new numbers.
            let fresh = (number - self.next).min(self.size());
            for passed in number - fresh..number {
                let (word, bit) = self.place(passed);
                self.bits[word] &= !bit;
            }
            self.next = number + 1;
        }
        let (word, bit) = self.place(number);
        self.bits[word] |= bit;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_number_is_taken_once_and_old_ones_are_refused() {
        let mut window = ReplayWindow::new(64);
        window.take(0);
        assert!(!window.is_new(0) && window.is_new(1));
        window.take(64);
        assert!(!window.is_new(64) && window.is_new(1) && window.is_new(63));
        assert!(!window.is_new(0), "older than 64 numbers");
        window.take(1);
        assert!(!window.is_new(1));
        window.take(65);
        assert!(!window.is_new(1), "left the window");
    }

    /// Compares the window with a set of all numbers, for a fixed sequence of small, large and
    /// backward steps.
    #[test]
    fn it_agrees_with_a_set_of_all_numbers() {
        for size in [64, 128, 1_024] {
            let (mut window, mut taken) = (ReplayWindow::new(size), BTreeSet::new());
            let (mut state, mut highest) = (1_u64, 0_u64);
            for _ in 0..20_000 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let step = state >> 40;
                let number = match step % 16 {
                    0 => highest + step % (3 * size as u64),
                    1..8 => highest + 1,
                    _ => highest.saturating_sub(step % (2 * size as u64)),
                };
                let old = !taken.is_empty() && highest >= number + size as u64;
                let expected = !taken.contains(&number) && !old;
                assert_eq!(window.is_new(number), expected, "{number} below {highest}");
                if expected {
                    window.take(number);
                    taken.insert(number);
                    highest = highest.max(number);
                }
            }
        }
    }
}
