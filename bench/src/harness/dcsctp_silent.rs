//! Adapter for the crate `dcsctp` without its packet log.

use anabranch_dcsctp_silent as stack;

#[path = "dcsctp_adapter.rs"]
#[allow(
    clippy::duplicate_mod,
    reason = "one adapter for two crates with the same API"
)]
mod adapter;

pub use adapter::{DcSctp, options};
