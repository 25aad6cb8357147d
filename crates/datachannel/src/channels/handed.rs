//! Messages of a channel that were passed to the transport and are not sent yet.

use std::collections::VecDeque;

/// Maximum size of a message that always fits one packet and is never fragmented, bytes.
const ONE_PACKET: usize = 1_024;

/// Size with which a message of `length` bytes counts as a large one.
pub(super) fn large(length: usize) -> usize {
    if length > ONE_PACKET { length } else { 0 }
}

#[derive(Debug)]
struct Piece {
    /// Length in bytes.
    length: usize,
    /// Unsent bytes.
    left: usize,
    /// Counted by `bufferedAmount`.
    counts: bool,
}

/// Messages of a channel in the transport, which sends them in order.
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

    /// Updates after the transport's unsent bytes fell to `buffered`. Returns the total size of
    /// large messages that are now sent completely.
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

    /// Unsent bytes.
    pub(super) fn left(&self) -> usize {
        self.left
    }

    /// Unsent bytes that `bufferedAmount` counts.
    pub(super) fn counted(&self) -> usize {
        self.counted
    }

    /// Total size of large messages that are not sent completely, bytes.
    pub(super) fn large(&self) -> usize {
        self.large
    }
}
