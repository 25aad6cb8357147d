//! Size distributions of transfers.
//!
//! Draws use only integers and functions of [`libm`], whose code is the same on every machine, so a
//! size depends only on the seed.

mod empirical;
mod fixed;
mod lognormal;
mod pareto;

use anabranch_settings::{Kind, KindEntry, KindError, NestedKind, Registry};

pub use empirical::Empirical;
pub use fixed::ConstantSize;
pub use lognormal::LogNormal;
pub use pareto::Pareto;

use crate::rng::Rng;

/// Maximum size of a transfer, bytes.
pub const MAX_SIZE: u64 = 1 << 40;

/// A distribution of sizes.
pub trait Sizes {
    /// Draws the next size, in bytes, at least 1.
    fn draw(&mut self, rng: &mut Rng) -> u64;

    /// Minimum and maximum size, bytes.
    fn range(&self) -> [u64; 2];
}

/// All size distributions.
pub const KINDS: &[&KindEntry<Box<dyn Sizes>>] = &[
    &fixed::ENTRY,
    &lognormal::ENTRY,
    &pareto::ENTRY,
    &empirical::ENTRY,
];

/// Registry of the size distributions in [`KINDS`].
pub fn kinds() -> Registry<Box<dyn Sizes>> {
    Registry::new(KINDS)
}

/// Value kind of a message or transfer size: a size distribution.
pub(super) const SIZES: Kind = Kind::Variant(|| kinds().variants());

/// Builds the size distribution that a parameter specifies.
pub(super) fn make(part: &NestedKind) -> Result<Box<dyn Sizes>, KindError> {
    kinds().build(&part.kind, &part.parameters, ())
}

/// Value kind of a size in bytes.
const BYTES: Kind = Kind::bytes(1, MAX_SIZE);

#[cfg(test)]
mod tests;
