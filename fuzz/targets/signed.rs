//! Passes the input bytes, as chunks of an authenticated peer, to an endpoint with AUTH and ASCONF
//! (RFC 4895, RFC 5061).
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/sctp/tests/common/mod.rs"]
mod common;
#[path = "../../crates/sctp/tests/signed_fuzz_case/mod.rs"]
mod signed_fuzz_case;

fuzz_target!(|bytes: &[u8]| signed_fuzz_case::run(bytes));
