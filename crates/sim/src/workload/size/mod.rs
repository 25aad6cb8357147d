//! Size distributions of transfers.
//!
//! Draws use integers and functions of [`libm`], whose code is the same on every machine, so that a
//! size depends only on the seed.

mod empirical;
mod fixed;
mod lognormal;
mod pareto;

use anabranch_settings::{Kind, KindEntry, NestedKind, Refusal, Registry};

pub use empirical::Empirical;
pub use fixed::Fixed;
pub use lognormal::LogNormal;
pub use pareto::Pareto;

use crate::rng::Rng;

/// Maximum size of a transfer, bytes.
pub const MAX_SIZE: u64 = 1 << 40;

/// A size distribution.
pub trait Sizes {
    /// The next size, bytes, at least 1.
    fn draw(&mut self, rng: &mut Rng) -> u64;

    /// The minimum and the maximum size, bytes.
    fn range(&self) -> [u64; 2];
}

/// All size distributions.
pub const KINDS: &[&KindEntry<Box<dyn Sizes>>] = &[
    &fixed::ENTRY,
    &lognormal::ENTRY,
    &pareto::ENTRY,
    &empirical::ENTRY,
];

/// The registry of [`KINDS`].
pub fn kinds() -> Registry<Box<dyn Sizes>> {
    Registry::new(KINDS)
}

/// The size of a message or a transfer as a parameter of a workload.
pub(super) const SIZES: Kind = Kind::Variant(|| kinds().variants());

/// The distribution that a parameter names.
pub(super) fn make(part: &NestedKind) -> Result<Box<dyn Sizes>, Refusal> {
    kinds().build(&part.kind, &part.parameters, ())
}

/// A size as a parameter of a distribution.
const BYTES: Kind = Kind::bytes(1, MAX_SIZE);

#[cfg(test)]
mod tests;
