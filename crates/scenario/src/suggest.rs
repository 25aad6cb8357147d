//! Suggestions for an unknown name: the nearest correct spelling, or the new name of an item that
//! was renamed.

pub use anabranch_settings::{hint, nearest, renamed};
