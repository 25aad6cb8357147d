//! What the carrier was given and has not sent, in order: whose the bytes are that it still has.

use std::collections::VecDeque;

use crate::channel::ChannelId;

#[derive(Debug)]
struct Piece {
    /// Whose they are.
    owner: ChannelId,
    /// Bytes that are not sent.
    left: usize,
    /// Those of them that `bufferedAmount` counts.
    counted: usize,
    /// The channel is gone.
    gone: bool,
}

/// Messages in the carrier.
#[derive(Debug, Default)]
pub(super) struct Handed {
    pieces: VecDeque<Piece>,
    bytes: usize,
}

impl Handed {
    pub(super) fn push(&mut self, owner: ChannelId, left: usize, counted: usize) {
        self.bytes += left;
        self.pieces.push_back(Piece {
            owner,
            left,
            counted,
            gone: false,
        });
    }

    /// The carrier has `buffered` bytes left. Gives a channel and bytes of it that count and are sent, until there are no more.
    pub(super) fn sent(&mut self, buffered: usize) -> Option<(ChannelId, usize)> {
        while self.bytes > buffered {
            let first = self.pieces.front_mut()?;
            let sent = first.left.min(self.bytes - buffered);
            first.left -= sent;
            self.bytes -= sent;
            // What counts is either all of a message or none.
            let counted = first.counted.min(sent);
            first.counted -= counted;
            let (owner, gone) = (first.owner, first.gone);
            if first.left == 0 {
                self.pieces.pop_front();
            }
            if !gone {
                return Some((owner, counted));
            }
        }
        None
    }

    /// Whether there is something of that stream's.
    pub(super) fn holds(&self, stream: u16) -> bool {
        self.pieces.iter().any(|it| it.owner.stream == stream)
    }

    /// The channel is gone, and need not hear of its bytes.
    pub(super) fn forget(&mut self, id: ChannelId) {
        for piece in self.pieces.iter_mut().filter(|it| it.owner == id) {
            piece.gone = true;
        }
    }
}
