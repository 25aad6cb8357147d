//! Interprets the input bytes as data channel messages of a peer, and as actions of the channels'
//! user (RFC 8831, RFC 8832).
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/datachannel/tests/channel_scenario/mod.rs"]
mod channel_scenario;

fuzz_target!(|bytes: &[u8]| channel_scenario::run(bytes));
