//! The published crate `dcsctp`, except that `log_packet` does nothing. The original formats each
//! packet as hexadecimal text even if logging is disabled, and no feature prevents it.
#![allow(warnings, clippy::all, reason = "the source is another project's")]

include!(concat!(env!("OUT_DIR"), "/lib.rs"));
