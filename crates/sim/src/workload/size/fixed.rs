//! Always the same size.

use anabranch_settings::{Entry, Fallback, Variant};

use super::{Sizes, bytes};
use crate::rng::Rng;

/// How specs name it.
pub(super) static ENTRY: Entry<Box<dyn Sizes>> = Entry {
    variant: Variant {
        name: "fixed",
        about: " A constant size.",
        parameters: &[bytes("bytes", " The size.", Fallback::Required)],
    },
    build: |parameters, ()| Ok(Box::new(Fixed(parameters.get("bytes")?))),
};

/// Always so many bytes.
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
