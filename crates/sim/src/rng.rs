//! Random streams, one per component.
//!
//! Each component draws from its own stream, which is derived from `(seed, replication, name of the
//! component)`. Adding a component therefore never changes the draws of another, and two worlds
//! with the same seed have the same losses on links of the same name.
//!
//! Random decisions compare integers, because floating-point libraries may differ in the last bit
//! between machines.

use anabranch_transport::Nanos;
use rand_core::RngCore;
use rand_pcg::Pcg64;

use crate::error::BuildError;

/// Seed of all random streams of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seed {
    /// Seed of the experiment, shared by all replications.
    pub seed: u64,
    /// Number of the replication.
    pub replication: u64,
}

impl Seed {
    /// The seed of replication `replication` under `seed`.
    pub const fn new(seed: u64, replication: u64) -> Self {
        Self { seed, replication }
    }

    /// Random stream of the component named `name`. Its draws depend only on the seed, the
    /// replication and the name.
    pub fn stream(self, name: &str) -> Rng {
        let mut hash = scramble(self.seed ^ 0x616e_6162_7261_6e63);
        hash = scramble(hash ^ self.replication);
        hash = scramble(hash ^ name.len() as u64);
        for chunk in name.as_bytes().chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            hash = scramble(hash ^ u64::from_le_bytes(word));
        }
        let mut word = || {
            hash = hash.wrapping_add(GOLDEN);
            u128::from(scramble(hash))
        };
        let state = word() << 64 | word();
        let stream = word() << 64 | word();
        Rng(Pcg64::new(state, stream))
    }
}

/// Increment of SplitMix64: 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Output function of SplitMix64: a bijection in which every input bit affects every output bit.
fn scramble(value: u64) -> u64 {
    let mut z = value.wrapping_add(GOLDEN);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// A probability, stored as a multiple of 2^-53, so that a draw compares integers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Probability(u64);

impl Probability {
    /// Probability 0.
    pub const ZERO: Probability = Probability(0);
    /// Probability 1.
    pub const ALWAYS: Probability = Probability(1 << 53);

    /// Creates a probability from a number.
    ///
    /// # Errors
    /// [`BuildError::Probability`] if `value` is not between 0 and 1.
    pub fn new(value: f64) -> Result<Self, BuildError> {
        if (0.0..=1.0).contains(&value) {
            Ok(Self((value * (1u64 << 53) as f64) as u64))
        } else {
            Err(BuildError::Probability(value))
        }
    }

    /// The probability in units of 2^-53.
    pub(crate) const fn whole(self) -> u64 {
        self.0
    }

    /// The value between 0 and 1.
    pub fn value(self) -> f64 {
        self.0 as f64 / (1u64 << 53) as f64
    }
}

/// A random stream (PCG XSL RR 128/64).
#[derive(Clone, Debug)]
pub struct Rng(Pcg64);

impl Rng {
    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns true with the given probability. Always draws exactly once, so that streams stay
    /// synchronised under different probabilities.
    #[inline]
    pub fn chance(&mut self, probability: Probability) -> bool {
        self.bits() >> 11 < probability.0
    }

    /// A uniform integer from 0 (inclusive) to `bound` (exclusive); 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            return 0;
        }
        // Lemire's multiplication method; the few low products that would bias the result are
        // rejected.
        let unfair = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(self.bits()) * u128::from(bound);
            if product as u64 >= unfair {
                return (product >> 64) as u64;
            }
        }
    }

    /// A uniform time from `from` (inclusive) to `to` (exclusive); `from` if the interval is empty.
    pub fn uniform(&mut self, from: Nanos, to: Nanos) -> Nanos {
        from + self.below(to.saturating_sub(from))
    }

    /// A uniform number above 0 and at most 1, a multiple of 2^-53.
    pub fn unit(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// A standard normal number, by the polar method (G. Marsaglia and T. A. Bray, "A Convenient
    /// Method for Generating Normal Variables", 1964); one of its two results is used.
    pub fn normal(&mut self) -> f64 {
        loop {
            let (u, v) = (2.0 * self.unit() - 1.0, 2.0 * self.unit() - 1.0);
            let square = u * u + v * v;
            if square > 0.0 && square < 1.0 {
                return u * libm::sqrt(-2.0 * libm::log(square) / square);
            }
        }
    }

    /// An exponentially distributed duration with the given mean, in whole nanoseconds.
    ///
    /// Uses von Neumann's method of 1951, which only compares uniform draws. It is therefore exact,
    /// and gives the same result on every machine.
    pub fn exponential(&mut self, mean: Nanos) -> Nanos {
        let mut whole: u64 = 0;
        loop {
            let first = self.bits();
            let mut last = first;
            let mut run = 1u32;
            loop {
                let next = self.bits();
                if next >= last {
                    break;
                }
                last = next;
                run += 1;
            }
            if run % 2 == 1 {
                let fraction = ((u128::from(mean) * u128::from(first)) >> 64) as u64;
                return mean.saturating_mul(whole).saturating_add(fraction);
            }
            whole += 1;
        }
    }
}

/// A start time drawn uniformly from `[from, to)`, from the stream of the flow named `flow`.
pub fn start_time(seed: Seed, flow: &str, from: Nanos, to: Nanos) -> Nanos {
    seed.stream(&format!("start {flow}")).uniform(from, to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_the_same_for_ever() {
        // These values must not change, because published results depend on them.
        let mut rng = Seed::new(1, 0).stream("link satellite forward loss");
        let drawn: Vec<u64> = (0..3).map(|_| rng.bits()).collect();
        assert_eq!(drawn, PINNED);
    }

    const PINNED: [u64; 3] = [
        16_935_603_954_080_766_072,
        8_271_082_746_600_904_313,
        11_649_113_531_610_621_642,
    ];

    #[test]
    fn streams_differ_by_seed_replication_and_name() {
        let first = |seed: Seed, name: &str| seed.stream(name).bits();
        let mut seen = vec![
            first(Seed::new(1, 0), "a"),
            first(Seed::new(0, 1), "a"),
            first(Seed::new(1, 1), "a"),
            first(Seed::new(1, 0), "b"),
            first(Seed::new(1, 0), "a\0"),
            first(Seed::new(1, 0), ""),
            first(Seed::new(1, 0), "aaaaaaaaa"),
        ];
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 7);
    }

    #[test]
    fn probabilities_are_checked_and_met() {
        assert!(Probability::new(-0.1).is_err());
        assert!(Probability::new(1.1).is_err());
        assert!(Probability::new(f64::NAN).is_err());
        let mut rng = Seed::new(7, 0).stream("chance");
        assert!((0..1000).all(|_| rng.chance(Probability::ALWAYS)));
        assert!((0..1000).all(|_| !rng.chance(Probability::ZERO)));
        let p = Probability::new(0.015).unwrap();
        let hits = (0..200_000).filter(|_| rng.chance(p)).count();
        // 3000 hits are expected, with a standard deviation of 54.
        assert!((2780..3220).contains(&hits), "{hits}");
    }

    #[test]
    fn exponential_has_its_mean_and_its_tail() {
        let mut rng = Seed::new(7, 0).stream("exponential");
        let draws: Vec<u64> = (0..100_000).map(|_| rng.exponential(1_000_000)).collect();
        let mean = draws.iter().sum::<u64>() as f64 / draws.len() as f64;
        assert!((mean - 1e6).abs() < 1.3e4, "{mean}");
        // P(X > 2 mean) = e^-2 = 0.13534
        let tail = draws.iter().filter(|&&x| x > 2_000_000).count() as f64 / 1e5;
        assert!((tail - 0.135_34).abs() < 0.004, "{tail}");
        assert_eq!(rng.exponential(0), 0);
    }

    #[test]
    fn below_is_fair_and_bounded() {
        let mut rng = Seed::new(7, 0).stream("below");
        let mut counts = [0u32; 6];
        for _ in 0..60_000 {
            counts[rng.below(6) as usize] += 1;
        }
        assert!(
            counts.iter().all(|c| (9_600..10_400).contains(c)),
            "{counts:?}"
        );
        assert_eq!(rng.below(0), 0);
        assert_eq!(rng.uniform(5, 5), 5);
        assert_eq!(rng.uniform(5, 3), 5);
        assert!((5..8).contains(&rng.uniform(5, 8)));
    }
}
