//! Random number generator for unit tests, with a fixed seed.

use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Returns a generator; each call draws a number below its argument.
pub(crate) fn test_rng(seed: u64) -> impl FnMut(u32) -> u32 {
    let mut draw = Pcg64Mcg::seed_from_u64(seed);
    move |below| draw.next_u32() % below
}
