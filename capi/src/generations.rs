//! Validity of cached socket state, checked in the memory that the host shares ([`Generation`]).

use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use anabranch_sockets::control::{GENERATION_SLOTS, Generation};

use crate::system;

/// The host's numbers; `None`: not available, so no answers are cached.
static NUMBERS: OnceLock<Option<&'static [AtomicU32; GENERATION_SLOTS]>> = OnceLock::new();

/// Maps the numbers, once, from the descriptor that `ask` returns.
pub fn find(ask: impl FnOnce() -> Result<c_int, c_int>) {
    NUMBERS.get_or_init(|| {
        let memory = ask().ok()?;
        let numbers = map(memory);
        system::close(memory);
        numbers
    });
}

/// The memory, which `fork` shares.
fn map(memory: c_int) -> Option<&'static [AtomicU32; GENERATION_SLOTS]> {
    let bytes = size_of::<[AtomicU32; GENERATION_SLOTS]>();
    let arguments = [
        0,
        bytes,
        libc::PROT_READ as usize,
        libc::MAP_SHARED as usize,
        memory as usize,
        0,
    ];
    // SAFETY: the kernel chooses the address, so no existing mapping is replaced.
    let at = unsafe { system::call(libc::SYS_mmap, arguments) }.ok()?;
    // SAFETY: the mapping has that many readable bytes, aligned to a page, and the host's memory
    // does not shrink. The host writes each number atomically.
    Some(unsafe { &*(at as *const [AtomicU32; GENERATION_SLOTS]) })
}

/// Whether the socket still has this generation.
pub fn is_current(generation: Generation) -> bool {
    let numbers = NUMBERS.get().copied().flatten();
    let numbers = numbers.and_then(|all| all.get(generation.slot as usize));
    numbers.is_some_and(|it| it.load(Ordering::Acquire) == generation.number)
}
