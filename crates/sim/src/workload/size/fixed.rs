//! Constant size distribution.

use anabranch_settings::{KindEntry, kind};

use super::{BYTES, Sizes};
use crate::rng::Rng;

kind! {
    /// The parameter of [`ConstantSize`].
    struct FixedConfig {
        /// Size of every transfer.
        bytes: u64, BYTES;
    }
    /// The same size for every transfer.
    pub(super) static ENTRY: KindEntry<Box<dyn Sizes>> = "fixed", |config, ()| Ok(Box::new(ConstantSize(config.bytes)));
}

/// Size distribution with a single size.
#[derive(Clone, Copy, Debug)]
pub struct ConstantSize(
    /// The size, bytes.
    pub u64,
);

impl Sizes for ConstantSize {
    fn draw(&mut self, _: &mut Rng) -> u64 {
        self.0
    }

    fn range(&self) -> [u64; 2] {
        [self.0; 2]
    }
}
