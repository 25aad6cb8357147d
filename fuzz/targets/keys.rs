//! Processes the input bytes as records of the DTLS chunk, or as messages of its key management.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/dtls/tests/hostile/mod.rs"]
mod hostile;

fuzz_target!(|bytes: &[u8]| hostile::check(bytes));
