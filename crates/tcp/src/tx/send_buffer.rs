//! Send buffer: data that the application has written and the peer has not acknowledged, addressed
//! by offset.

use std::collections::VecDeque;

use bytes::{Buf, Bytes};

/// A contiguous piece of data in the send buffer.
#[derive(Clone, Debug)]
enum Extent {
    /// Bytes written by the application.
    Bytes(Bytes),
    /// This number of zeros, which use no memory.
    Zeros(u64),
}

#[derive(Clone, Debug)]
struct Piece {
    start: u64,
    run: Extent,
}

/// Data from the first unacknowledged byte to the last byte written.
#[derive(Clone, Debug)]
pub(crate) struct SendBuffer {
    pieces: VecDeque<Piece>,
    start: u64,
    end: u64,
}

/// Source of the bytes in a piece of zeros.
static ZEROS: [u8; 16384] = [0; 16384];
/// Maximum offset, which limits the number of zeros that can be written.
const LAST_OFFSET: u64 = 1 << 62;

impl SendBuffer {
    /// Creates an empty buffer whose next byte has the offset `start`.
    pub(crate) fn new(start: u64) -> Self {
        Self {
            pieces: VecDeque::new(),
            start,
            end: start,
        }
    }

    /// Number of buffered bytes.
    pub(crate) fn len(&self) -> u64 {
        self.end - self.start
    }

    /// Offset after the last byte written.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Appends `bytes` without copying them.
    pub(crate) fn write(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            let start = self.end;
            self.end += bytes.len() as u64;
            self.pieces.push_back(Piece {
                start,
                run: Extent::Bytes(bytes),
            });
        }
    }

    /// Appends `count` zeros, which use no memory; fewer if the maximum offset would be exceeded.
    pub(crate) fn write_zeros(&mut self, count: u64) {
        let count = count.min(LAST_OFFSET.saturating_sub(self.end));
        if count == 0 {
            return;
        }
        let start = self.end;
        self.end += count;
        if let Some(Piece {
            run: Extent::Zeros(zeros),
            ..
        }) = self.pieces.back_mut()
        {
            *zeros += count;
        } else {
            self.pieces.push_back(Piece {
                start,
                run: Extent::Zeros(count),
            });
        }
    }

    /// Discards the data from offset `from` on.
    pub(crate) fn truncate(&mut self, from: u64) {
        let from = from.clamp(self.start, self.end);
        while let Some(piece) = self.pieces.back_mut() {
            if piece.start >= from {
                self.pieces.pop_back();
                continue;
            }
            let keep = from - piece.start;
            match &mut piece.run {
                Extent::Bytes(bytes) => bytes.truncate(keep as usize),
                Extent::Zeros(count) => *count = (*count).min(keep),
            }
            break;
        }
        self.end = from;
    }

    /// Releases the data before offset `to`, because it was acknowledged.
    pub(crate) fn release(&mut self, to: u64) {
        let to = to.clamp(self.start, self.end);
        self.start = to;
        while let Some(piece) = self.pieces.front_mut() {
            let length = piece.len();
            if piece.start + length <= to {
                self.pieces.pop_front();
                continue;
            }
            let skip = to.saturating_sub(piece.start);
            piece.start += skip;
            match &mut piece.run {
                Extent::Bytes(bytes) => bytes.advance(skip as usize),
                Extent::Zeros(count) => *count -= skip,
            }
            break;
        }
    }

    /// The `len` bytes from offset `from` on as one slice; `None` if the first piece does not
    /// contain all of them.
    #[inline]
    pub(crate) fn slice(&self, from: u64, len: usize) -> Option<&[u8]> {
        let first = self.pieces.front()?;
        let skip = from.checked_sub(first.start)?;
        match &first.run {
            Extent::Zeros(count) => ZEROS.get(..len).filter(|_| skip + len as u64 <= *count),
            Extent::Bytes(bytes) => bytes.get(skip as usize..)?.get(..len),
        }
    }

    /// The `len` bytes from offset `from` on as a sequence of slices. All of these bytes must be in
    /// the buffer.
    pub(crate) fn slices(&self, from: u64, len: usize) -> impl Iterator<Item = &[u8]> {
        debug_assert!(from >= self.start && from + len as u64 <= self.end);
        let ends_before = |piece: &Piece| piece.start + piece.len() <= from;
        // Usually the first piece contains `from`, because a source of zeros is a single piece.
        let first = match self.pieces.front() {
            Some(piece) if ends_before(piece) => self.pieces.partition_point(ends_before),
            _ => 0,
        };
        let mut pieces = self.pieces.range(first..);
        let (mut at, end) = (from, from + len as u64);
        let mut piece = pieces.next();
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let current = piece?;
            let current_end = current.start + current.len();
            let take = end.min(current_end) - at;
            let slice = match &current.run {
                Extent::Bytes(bytes) => {
                    let skip = (at - current.start) as usize;
                    &bytes[skip..skip + take as usize]
                }
                Extent::Zeros(_) => &ZEROS[..take.min(ZEROS.len() as u64) as usize],
            };
            at += slice.len() as u64;
            if at == current_end {
                piece = pieces.next();
            }
            Some(slice)
        })
    }
}

impl Piece {
    fn len(&self) -> u64 {
        match &self.run {
            Extent::Bytes(bytes) => bytes.len() as u64,
            Extent::Zeros(count) => *count,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copied(buffer: &SendBuffer, from: u64, len: usize) -> Vec<u8> {
        buffer.slices(from, len).flatten().copied().collect()
    }

    #[test]
    fn pieces_are_read_across_their_seams() {
        let mut buffer = SendBuffer::new(1);
        buffer.write(Bytes::from_static(b"abc"));
        buffer.write(Bytes::new());
        buffer.write_zeros(2);
        buffer.write_zeros(1);
        buffer.write(Bytes::from_static(b"xyz"));
        assert_eq!((buffer.len(), buffer.end()), (9, 10));
        assert_eq!(copied(&buffer, 1, 9), b"abc\0\0\0xyz");
        assert_eq!(copied(&buffer, 3, 3), b"c\0\0");
        buffer.release(6);
        assert_eq!(copied(&buffer, 6, 4), b"\0xyz");
        buffer.release(8);
        assert_eq!(copied(&buffer, 8, 2), b"yz");
        buffer.release(100);
        assert_eq!((buffer.len(), buffer.end()), (0, 10));
    }

    #[test]
    fn endless_zeros_end_where_asked() {
        let mut buffer = SendBuffer::new(1);
        buffer.write(Bytes::from_static(b"head"));
        buffer.write_zeros(u64::MAX);
        buffer.release(1_000_000);
        assert_eq!(copied(&buffer, 1_000_000, 3), [0, 0, 0]);
        assert_eq!(copied(&buffer, 1_000_000, 40_000), vec![0; 40_000]);
        buffer.truncate(1_000_002);
        assert_eq!(buffer.len(), 2);
        buffer.write(Bytes::from_static(b"!"));
        assert_eq!(copied(&buffer, 1_000_000, 3), b"\0\0!");
        buffer.truncate(0);
        assert_eq!((buffer.len(), buffer.end()), (0, 1_000_000));
    }
}
