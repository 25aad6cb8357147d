//! Parses the input bytes as a TCP segment. No input may cause a panic, and a parsed segment must
//! be encoded again with the same meaning.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/wire/tests/oracle/mod.rs"]
#[allow(dead_code, reason = "the other target's half")]
mod oracle;

fuzz_target!(|bytes: &[u8]| oracle::check_segment(&bytes::Bytes::copy_from_slice(bytes)));
