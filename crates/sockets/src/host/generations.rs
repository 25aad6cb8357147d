//! Generations of sockets, which invalidate the state that programs have cached.
//!
//! A program caches the route of a socket's messages, and whether to wait for data, because a
//! request for them costs much more than a message. When the answer changes (the association ends,
//! or stops accepting messages), the socket gets a new generation. This is a number in memory that
//! all programs of the host can read, so that comparing it before each message needs no system
//! call.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::sync::Mutex;

use crate::control::{GENERATION_SLOTS, Generation};

/// Generations of all sockets of a host.
pub(super) struct Generations {
    /// Shared memory with the numbers.
    memory: File,
    /// Read-only descriptor of the same memory, for programs.
    readable: File,
    /// Current content of the memory.
    numbers: Mutex<Vec<u32>>,
}

impl Generations {
    /// Creates the memory for a new host.
    ///
    /// # Errors
    /// The system has no memory or descriptors left.
    pub(super) fn new() -> io::Result<Self> {
        use rustix::fs::{MemfdFlags, memfd_create};
        use std::os::fd::AsRawFd;
        let memory: File = memfd_create("anabranch-generations", MemfdFlags::CLOEXEC)?.into();
        let readable = File::open(format!("/proc/self/fd/{}", memory.as_raw_fd()))?;
        // The initial numbers depend on the process, because they must differ from those of another
        // host.
        let numbers = vec![std::process::id().wrapping_mul(0x9e37_79b9); GENERATION_SLOTS];
        let bytes: Vec<u8> = numbers.iter().flat_map(|it| it.to_ne_bytes()).collect();
        memory.write_all_at(&bytes, 0)?;
        Ok(Self {
            memory,
            readable,
            numbers: Mutex::new(numbers),
        })
    }

    /// The current generation of the socket with this number. Sockets may share a slot, which only
    /// causes additional requests.
    pub(super) fn current(&self, socket: u32) -> Generation {
        let slot = socket % GENERATION_SLOTS as u32;
        let numbers = self.numbers.lock().unwrap_or_else(|it| it.into_inner());
        let number = numbers[slot as usize];
        Generation { slot, number }
    }

    /// Starts a new generation of this socket, which invalidates all cached state about it.
    pub(super) fn advance(&self, socket: u32) {
        let slot = socket as usize % GENERATION_SLOTS;
        let mut numbers = self.numbers.lock().unwrap_or_else(|it| it.into_inner());
        numbers[slot] = numbers[slot].wrapping_add(1);
        let at = 4 * slot as u64;
        if let Err(error) = self.memory.write_all_at(&numbers[slot].to_ne_bytes(), at) {
            tracing::warn!(%error, "programs may remember what does not hold");
        }
    }

    /// Descriptor of the memory, for programs.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.readable.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(generations: &Generations, slot: u32) -> u32 {
        let mut bytes = [0; 4];
        let at = 4 * u64::from(slot);
        generations.readable.read_exact_at(&mut bytes, at).unwrap();
        u32::from_ne_bytes(bytes)
    }

    #[test]
    fn a_new_generation_is_seen_by_programs_and_is_of_one_place() {
        let generations = Generations::new().expect("memory");
        let [first, other] = [3, 4].map(|it| generations.current(it));
        assert_eq!(read(&generations, first.slot), first.number);
        generations.advance(3);
        let next = generations.current(3);
        assert_ne!(next, first);
        assert_eq!(read(&generations, next.slot), next.number);
        assert_eq!(generations.current(4), other);
        // The numbers of sockets wrap around to the first slot.
        generations.advance(4 + GENERATION_SLOTS as u32);
        assert_ne!(generations.current(4), other);
    }

    #[test]
    fn programs_cannot_write_it() {
        let generations = Generations::new().expect("memory");
        assert!(generations.readable.write_at(&[1; 4], 0).is_err());
    }
}
