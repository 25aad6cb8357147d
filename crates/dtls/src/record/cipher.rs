//! Ciphers of the suites: implementations in Rust, or with the feature `ring` those of the crate
//! ring, in assembly.

#[cfg(feature = "ring")]
mod assembly;
#[cfg(any(test, not(feature = "ring")))]
mod rust;

#[cfg(feature = "ring")]
pub(crate) use assembly::{Aead, Mask};
#[cfg(not(feature = "ring"))]
pub(crate) use rust::{Aead, Mask};
