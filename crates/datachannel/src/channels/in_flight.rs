//! Messages of a channel that were passed to the transport and that it has not sent completely.

use std::collections::VecDeque;

/// Maximum size of a message that always fits one packet and is never fragmented, bytes.
const ONE_PACKET: usize = 1_024;

/// Size of a message of `length` bytes if it counts as large, bytes; otherwise 0.
pub(super) fn large(length: usize) -> usize {
    if length > ONE_PACKET { length } else { 0 }
}

#[derive(Debug)]
struct PassedMessage {
    /// Length of the message, bytes.
    length: usize,
    /// Number of bytes that are not sent yet.
    unsent: usize,
    /// Whether `bufferedAmount` counts the message.
    counts: bool,
}

/// Messages of a channel in the transport, which sends them in order.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    messages: VecDeque<PassedMessage>,
    unsent: usize,
    counted: usize,
    large: usize,
}

impl InFlight {
    pub(super) fn push(&mut self, length: usize, counts: bool) {
        self.unsent += length;
        self.large += large(length);
        if counts {
            self.counted += length;
        }
        self.messages.push_back(PassedMessage {
            length,
            unsent: length,
            counts,
        });
    }

    /// Updates the messages after the number of unsent bytes in the transport fell to `buffered`.
    /// Returns the total size of large messages that are now sent completely.
    pub(super) fn settle(&mut self, buffered: usize) -> usize {
        let mut ended = 0;
        while self.unsent > buffered
            && let Some(first) = self.messages.front_mut()
        {
            let sent = first.unsent.min(self.unsent - buffered);
            first.unsent -= sent;
            self.unsent -= sent;
            if first.counts {
                self.counted -= sent;
            }
            if first.unsent == 0 {
                ended += large(first.length);
                self.messages.pop_front();
            }
        }
        self.large -= ended;
        ended
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Total number of unsent bytes.
    pub(super) fn unsent(&self) -> usize {
        self.unsent
    }

    /// Number of unsent bytes that `bufferedAmount` counts.
    pub(super) fn counted_unsent(&self) -> usize {
        self.counted
    }

    /// Total size of large messages that are not sent completely, bytes.
    pub(super) fn large(&self) -> usize {
        self.large
    }
}
