//! Fill level of the send buffer, for users that queue more messages as it empties.

use super::Association;
use crate::tx::Sender;

/// Fill level of the send buffer: see [`Association::send_buffer`].
#[derive(Clone, Copy, Debug)]
pub struct SendBuffer<'a> {
    association: &'a Association,
}

impl SendBuffer<'_> {
    /// Bytes of user data that are queued and not yet sent.
    pub fn unsent(self) -> usize {
        self.association.tx.get().map_or(0, Sender::unsent_bytes)
    }

    /// Bytes of user data that are queued for `stream` and not yet sent. Excludes messages to which
    /// no stream was assigned yet.
    pub fn unsent_on(self, stream: u16) -> usize {
        let tx = self.association.tx.get();
        tx.map_or(0, |it| it.unsent_bytes_on(stream))
    }

    /// Memory in bytes that messages use until the peer acknowledges them cumulatively (Gap Ack
    /// Blocks do not count): user data, and the overhead of each message and chunk. A million
    /// messages of one byte use 193 times their user data.
    pub fn used(self) -> usize {
        self.association.tx.held()
    }

    /// Whether [`Association::send`] certainly accepts a message of `size` bytes: the stream
    /// exists, and the buffer has space for it. If `false`, [`Association::send`] may still accept
    /// the message, by abandoning other messages for it.
    #[inline]
    pub fn accepts(self, stream: Option<u16>, size: usize) -> bool {
        let Self { association } = self;
        let tx = association.tx.get();
        association.takes_messages(None).is_ok() && tx.is_some_and(|tx| tx.can_send(stream, size))
    }
}

impl Association {
    /// Fill level of the send buffer, in bytes.
    #[inline]
    pub fn send_buffer(&self) -> SendBuffer<'_> {
        SendBuffer { association: self }
    }
}
