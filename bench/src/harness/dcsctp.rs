//! The published crate `dcsctp`.

use ::dcsctp as stack;

#[path = "dcsctp_adapter.rs"]
mod adapter;

pub use adapter::DcSctp;
