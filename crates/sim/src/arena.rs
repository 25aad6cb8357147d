//! Buffers that packets are written into: large chunks, used again once every packet cut from them is gone.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

/// Size of a chunk, bytes. Some eighty packets of an Ethernet's size; small enough for a cache.
const CHUNK: usize = 128 * 1024;
/// What a chunk must still hold before it is handed out, bytes: more than most packets take. A larger one moves the buffer.
const ROOM: usize = 16 * 1024;
/// How many chunks are kept to be used again. More are in use only while more than this much is in flight.
const KEPT: usize = 256;
/// How many of the oldest chunks are tried before a new one is made.
const TRIED: usize = 4;

/// The buffer of [`anabranch_transport::Transport::poll_transmit`], endlessly.
#[derive(Debug)]
pub(crate) struct Arena {
    current: BytesMut,
    /// Chunks that were filled, oldest first. Packets die in about the order of their birth, so the oldest is the first
    /// to be free.
    filled: VecDeque<BytesMut>,
}

impl Arena {
    pub fn new() -> Self {
        Self {
            current: BytesMut::with_capacity(CHUNK),
            filled: VecDeque::new(),
        }
    }

    /// An empty buffer with room for a packet.
    #[inline(always)] // Where agents are driven.
    pub fn buffer(&mut self) -> &mut BytesMut {
        self.current.clear();
        if self.current.capacity() < ROOM {
            self.turn();
        }
        &mut self.current
    }

    /// Takes what was written to the buffer.
    #[inline]
    pub fn take(&mut self) -> Bytes {
        self.current.split().freeze()
    }

    #[cold]
    fn turn(&mut self) {
        // A message that a slow reader holds keeps its whole chunk, so a few of those behind the oldest are tried too.
        let free = (0..self.filled.len().min(TRIED))
            .find(|&i| self.filled[i].try_reclaim(CHUNK))
            .and_then(|i| self.filled.remove(i));
        if self.filled.len() == KEPT {
            // Its memory goes when whatever holds on to it lets go.
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
        // 100 packets of 1500 bytes fit in 2 chunks; chunks straddle the aligned blocks counted here.
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
    fn what_was_not_taken_is_forgotten() {
        let mut arena = Arena::new();
        arena.buffer().extend_from_slice(b"left over");
        assert_eq!(write(&mut arena, 3).len(), 3);
    }
}
