//! A constant size.

use anabranch_settings::{KindEntry, kind};

use super::{BYTES, Sizes};
use crate::rng::Rng;

kind! {
    /// The parameter of [`Fixed`].
    struct FixedConfig {
        /// The size.
        bytes: u64, BYTES;
    }
    /// A constant size.
    pub(super) static ENTRY: KindEntry<Box<dyn Sizes>> = "fixed", |config, ()| Ok(Box::new(Fixed(config.bytes)));
}

/// A constant size in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Fixed(
    /// Bytes.
    pub u64,
);

impl Sizes for Fixed {
    fn draw(&mut self, _: &mut Rng) -> u64 {
        self.0
    }

    fn range(&self) -> [u64; 2] {
        [self.0; 2]
    }
}
