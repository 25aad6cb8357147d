//! Arena of packet buffers. Packets are cut from large chunks, and a chunk is reused when all its
//! packets have been dropped.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

/// Size of a chunk, bytes: about eighty Ethernet frames. A chunk is small enough for the
/// processor's cache.
const CHUNK: usize = 128 * 1024;
/// Minimum free space of the current chunk before the next packet is written, bytes. Most packets
/// are smaller; a larger packet reallocates the buffer.
const ROOM: usize = 16 * 1024;
/// Maximum number of chunks that are kept for reuse. Further chunks are freed after use.
const KEPT: usize = 256;
/// Number of full chunks, oldest first, that are tested for reuse before a new one is allocated.
const TRIED: usize = 4;

/// Supplies buffers to [`anabranch_transport::Transport::poll_transmit`].
#[derive(Debug)]
pub(crate) struct Arena {
    current: BytesMut,
    /// Full chunks, oldest first. Packets are dropped approximately in the order in which they were
    /// created, so the oldest chunk is usually free first.
    filled: VecDeque<BytesMut>,
}

impl Arena {
    pub fn new() -> Self {
        Self {
            current: BytesMut::with_capacity(CHUNK),
            filled: VecDeque::new(),
        }
    }

    /// An empty buffer with space for a packet.
    #[inline(always)] // Called by the code that drives agents.
    pub fn buffer(&mut self) -> &mut BytesMut {
        self.current.clear();
        if self.current.capacity() < ROOM {
            self.turn();
        }
        &mut self.current
    }

    /// Takes the packet that was written to the buffer.
    #[inline]
    pub fn take(&mut self) -> Bytes {
        self.current.split().freeze()
    }

    #[cold]
    fn turn(&mut self) {
        // Several chunks are tried, because a single message that its receiver has not yet read
        // keeps a whole chunk alive.
        let free = (0..self.filled.len().min(TRIED))
            .find(|&i| self.filled[i].try_reclaim(CHUNK))
            .and_then(|i| self.filled.remove(i));
        if self.filled.len() == KEPT {
            // The chunk removed from the list is freed when the last packet in it is dropped.
            self.filled.pop_front();
        }
        let next = free.unwrap_or_else(|| BytesMut::with_capacity(CHUNK));
        self.filled
            .push_back(std::mem::replace(&mut self.current, next));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(arena: &mut Arena, len: usize) -> Bytes {
        arena.buffer().resize(len, 7);
        arena.take()
    }

    #[test]
    fn chunks_are_used_again() {
        let mut arena = Arena::new();
        let mut window = VecDeque::new();
        let mut chunks = std::collections::BTreeSet::new();
        for _ in 0..100_000 {
            let packet = write(&mut arena, 1500);
            assert!(packet.iter().all(|&b| b == 7));
            chunks.insert(packet.as_ptr() as usize / CHUNK);
            window.push_back(packet);
            if window.len() > 100 {
                window.pop_front();
            }
        }
        // 100 packets of 1500 bytes fit in 2 chunks. The addresses are counted in aligned blocks,
        // and a chunk may straddle two of them.
        assert!(arena.filled.len() <= 4, "{}", arena.filled.len());
        assert!(chunks.len() <= 12, "{}", chunks.len());
    }

    #[test]
    fn a_packet_that_never_goes_does_not_make_the_arena_grow() {
        let mut arena = Arena::new();
        let _kept = write(&mut arena, 10);
        for _ in 0..1_000_000 {
            write(&mut arena, 1500);
        }
        assert!(arena.filled.len() <= KEPT);
    }

    #[test]
    fn bytes_left_in_the_arena_are_discarded() {
        let mut arena = Arena::new();
        arena.buffer().extend_from_slice(b"left over");
        assert_eq!(write(&mut arena, 3).len(), 3);
    }
}
