//! Any bytes as messages of a peer about data channels, and as actions of their user (RFC 8831,
//! RFC 8832).
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/datachannel/tests/channel_scenario/mod.rs"]
mod channel_scenario;

fuzz_target!(|bytes: &[u8]| channel_scenario::run(bytes));
