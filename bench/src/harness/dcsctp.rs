//! Adapter for the crate `dcsctp` as published.

use ::dcsctp as stack;

#[path = "dcsctp_adapter.rs"]
mod adapter;

pub use adapter::DcSctp;
