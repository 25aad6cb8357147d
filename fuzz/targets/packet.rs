//! Parses the input bytes as an SCTP packet. No input may cause a panic or an endless loop, and a
//! parsed packet must be encoded again with the same meaning.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/wire/tests/oracle/mod.rs"]
#[allow(dead_code, reason = "the other target's half")]
mod oracle;

fuzz_target!(|bytes: &[u8]| oracle::check_packet(&bytes::Bytes::copy_from_slice(bytes)));
