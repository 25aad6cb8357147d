//! The published crate `dcsctp`, except that `log_packet` does nothing. The original formats each
//! packet as hexadecimal text before it checks whether logging is enabled, and no feature disables
//! that.
#![allow(warnings, clippy::all, reason = "the source is another project's")]

include!(concat!(env!("OUT_DIR"), "/lib.rs"));
