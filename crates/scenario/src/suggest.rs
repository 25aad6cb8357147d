//! Suggestions for an unknown name: the nearest correct spelling, or the present name of a renamed
//! one.

pub use anabranch_settings::{hint, nearest, renamed};
