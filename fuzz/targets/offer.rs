//! Any text as an offer of data channels: it is read or refused, and its answer has lines of SDP
//! and no others.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/datachannel/tests/channel_scenario/offer.rs"]
mod offer;

fuzz_target!(|bytes: &[u8]| offer::check(bytes));
