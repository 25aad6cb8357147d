//! Check that cached socket state is still valid: the host shares memory with a number for each
//! slot ([`Generation`]).

use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use anabranch_sockets::control::{GENERATION_SLOTS, Generation};

use crate::system;

/// Current number of each slot, in the host's memory. `None`: the memory is not available, so
/// cached state is never valid.
static NUMBERS: OnceLock<Option<&'static [AtomicU32; GENERATION_SLOTS]>> = OnceLock::new();

/// Maps the host's memory at the first call, from the descriptor that `ask` returns.
pub fn find(ask: impl FnOnce() -> Result<c_int, c_int>) {
    NUMBERS.get_or_init(|| {
        let memory = ask().ok()?;
        let numbers = map(memory);
        system::close(memory);
        numbers
    });
}

/// Maps the memory read-only and shared; it remains mapped after `fork`.
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

/// Whether the cached state of this generation is still valid.
pub fn is_current(generation: Generation) -> bool {
    let numbers = NUMBERS.get().copied().flatten();
    let numbers = numbers.and_then(|all| all.get(generation.slot as usize));
    numbers.is_some_and(|it| it.load(Ordering::Acquire) == generation.number)
}
