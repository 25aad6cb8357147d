//! What the carrier was given of one channel and has not sent.

use std::collections::VecDeque;

/// The longest message that goes in one packet and never comes in pieces, bytes.
const ONE_PACKET: usize = 1_024;

/// What a message of `length` bytes counts as a large one.
pub(super) fn large(length: usize) -> usize {
    if length > ONE_PACKET { length } else { 0 }
}

#[derive(Debug)]
struct Piece {
    /// Its bytes.
    length: usize,
    /// Those that are not sent.
    left: usize,
    /// `bufferedAmount` counts them.
    counts: bool,
}

/// Messages of a channel in the carrier, which sends them in the order in which they were given.
#[derive(Debug, Default)]
pub(super) struct Handed {
    pieces: VecDeque<Piece>,
    left: usize,
    counted: usize,
    large: usize,
}

impl Handed {
    pub(super) fn push(&mut self, length: usize, counts: bool) {
        self.left += length;
        self.large += large(length);
        if counts {
            self.counted += length;
        }
        self.pieces.push_back(Piece {
            length,
            left: length,
            counts,
        });
    }

    /// The carrier has `buffered` bytes left. Returns by how much there is less of large messages, of which all is sent.
    pub(super) fn settle(&mut self, buffered: usize) -> usize {
        let mut ended = 0;
        while self.left > buffered
            && let Some(first) = self.pieces.front_mut()
        {
            let sent = first.left.min(self.left - buffered);
            first.left -= sent;
            self.left -= sent;
            if first.counts {
                self.counted -= sent;
            }
            if first.left == 0 {
                ended += large(first.length);
                self.pieces.pop_front();
            }
        }
        self.large -= ended;
        ended
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Bytes that are not sent.
    pub(super) fn left(&self) -> usize {
        self.left
    }

    /// Those of them that `bufferedAmount` counts.
    pub(super) fn counted(&self) -> usize {
        self.counted
    }

    /// Bytes of large messages of which not all is sent.
    pub(super) fn large(&self) -> usize {
        self.large
    }
}
