//! Parses the input as an offer of data channels. The offer is accepted or refused, and an answer
//! must consist of valid SDP lines.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/datachannel/tests/channel_scenario/offer.rs"]
mod offer;

fuzz_target!(|bytes: &[u8]| offer::check(bytes));
