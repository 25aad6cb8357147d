//! The crate `dcsctp` as it is published.

use ::dcsctp as stack;

#[path = "dcsctp_adapter.rs"]
mod adapter;

pub use adapter::DcSctp;
