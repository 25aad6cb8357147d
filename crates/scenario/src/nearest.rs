//! The nearest correct spelling.

pub use anabranch_settings::nearest;
