//! Runs two endpoints in a scenario that the input bytes determine: their users, the network and an
//! attacker. No input may cause a panic, and every association must end.
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
