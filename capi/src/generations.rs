//! Whether what is remembered of a socket still holds, by the memory that the host shares ([`Generation`]).

use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use anabranch_sockets::control::{Generation, PLACES};

use crate::system;

/// The host's numbers; `None`: they cannot be had, and nothing is remembered.
static NUMBERS: OnceLock<Option<&'static [AtomicU32; PLACES]>> = OnceLock::new();

/// Finds the numbers, once, in the memory that `ask` gives a descriptor of.
pub fn find(ask: impl FnOnce() -> Result<c_int, c_int>) {
    NUMBERS.get_or_init(|| {
        let memory = ask().ok()?;
        let numbers = map(memory);
        system::close(memory);
        numbers
    });
}

/// The memory, which a `fork` shares.
fn map(memory: c_int) -> Option<&'static [AtomicU32; PLACES]> {
    let bytes = size_of::<[AtomicU32; PLACES]>();
    let arguments = [
        0,
        bytes,
        libc::PROT_READ as usize,
        libc::MAP_SHARED as usize,
        memory as usize,
        0,
    ];
    // SAFETY: the kernel chooses where; nothing that is there is replaced.
    let at = unsafe { system::call(libc::SYS_mmap, arguments) }.ok()?;
    // SAFETY: so many bytes of the host's are there from now on, aligned to a page, and can be read; the host's memory does not shrink. The host
    // writes each number whole.
    Some(unsafe { &*(at as *const [AtomicU32; PLACES]) })
}

/// Whether it is the socket's generation still.
pub fn is_current(generation: Generation) -> bool {
    let numbers = NUMBERS.get().copied().flatten();
    let numbers = numbers.and_then(|all| all.get(generation.place as usize));
    numbers.is_some_and(|it| it.load(Ordering::Acquire) == generation.number)
}
