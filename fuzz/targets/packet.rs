//! Any bytes as an SCTP packet: nothing panics, every loop ends, and a parsed packet is encoded
//! again with the same meaning.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/wire/tests/oracle/mod.rs"]
#[allow(dead_code, reason = "the other target's half")]
mod oracle;

fuzz_target!(|bytes: &[u8]| oracle::check_packet(&bytes::Bytes::copy_from_slice(bytes)));
