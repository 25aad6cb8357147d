//! Any bytes as a play of two endpoints, their users, the network and a stranger: nothing panics,
//! everything ends.
#![no_main]

use cap::Cap;
use libfuzzer_sys::fuzz_target;

#[path = "../../crates/sctp/tests/play/mod.rs"]
mod play;

#[global_allocator]
static HEAP: Cap<std::alloc::System> = Cap::new(std::alloc::System, usize::MAX);

fn held() -> usize {
    HEAP.allocated()
}

fuzz_target!(|bytes: &[u8]| play::play(bytes, Some(held)));
