//! Any bytes as what an insider says to an endpoint that authenticates and changes addresses (RFC
//! 4895, RFC 5061).
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/sctp/tests/common/mod.rs"]
mod common;
#[path = "../../crates/sctp/tests/signed_play/mod.rs"]
mod signed_play;

fuzz_target!(|bytes: &[u8]| signed_play::play(bytes));
