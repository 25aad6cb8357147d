//! Any bytes as a fuzz case of two endpoints, their users, the network and an attacker. Nothing
//! panics, and every association ends.
#![no_main]

use cap::Cap;
use libfuzzer_sys::fuzz_target;

#[path = "../../crates/sctp/tests/fuzz_case/mod.rs"]
mod fuzz_case;

#[global_allocator]
static HEAP: Cap<std::alloc::System> = Cap::new(std::alloc::System, usize::MAX);

fn held() -> usize {
    HEAP.allocated()
}

fuzz_target!(|bytes: &[u8]| fuzz_case::run(bytes, Some(held)));
