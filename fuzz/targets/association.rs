//! Any bytes as a play of two endpoints, their users, the network and a stranger: nothing panics, everything ends.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/sctp/tests/play/mod.rs"]
mod play;

fuzz_target!(|bytes: &[u8]| play::play(bytes));
