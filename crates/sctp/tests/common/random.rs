//! Random number generator for random scenarios.

use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Random number generator with a given seed.
pub struct Random(Pcg64Mcg);

impl Random {
    pub fn of(seed: u64) -> Self {
        Self(Pcg64Mcg::seed_from_u64(seed))
    }

    /// Random 64-bit number.
    pub fn any(&mut self) -> u64 {
        self.0.next_u64()
    }

    pub fn below(&mut self, most: u64) -> u64 {
        self.any() % most
    }

    pub fn once_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }
}
