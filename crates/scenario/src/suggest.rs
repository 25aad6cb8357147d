//! The nearest correct spelling, or the present name.

pub use anabranch_settings::{hint, nearest, renamed};
