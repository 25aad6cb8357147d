//! Received messages as delivered to the application.

use anabranch_wire::{Ssn, Tsn};
use bytes::{Bytes, BytesMut};

use crate::profile::Counts;

/// User data of a message: one slice of a datagram, or several if it was fragmented.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageBytes {
    /// Received in one chunk.
    One(Bytes),
    /// Fragments in order.
    Many(Vec<Bytes>),
}

impl MessageBytes {
    /// Length of the user data in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            MessageBytes::One(bytes) => bytes.len(),
            MessageBytes::Many(parts) => parts.iter().map(Bytes::len).sum(),
        }
    }

    /// Bytes of the message as the receive window counts them.
    #[inline]
    pub(super) fn counted(&self, counts: Counts) -> u64 {
        match self {
            MessageBytes::One(bytes) => counts.bytes(bytes.len()),
            MessageBytes::Many(parts) => parts.iter().map(|part| counts.bytes(part.len())).sum(),
        }
    }

    /// Number of chunks that carried it.
    #[inline]
    pub(super) fn chunks(&self) -> usize {
        self.parts().len()
    }

    /// Whether the message is empty. A received message never is.
    pub fn is_empty(&self) -> bool {
        self.parts().iter().all(Bytes::is_empty)
    }

    /// The slices in order.
    #[inline]
    pub fn parts(&self) -> &[Bytes] {
        match self {
            MessageBytes::One(bytes) => std::slice::from_ref(bytes),
            MessageBytes::Many(parts) => parts,
        }
    }

    /// The message as one buffer; copies only if it was fragmented.
    pub fn into_bytes(self) -> Bytes {
        match self {
            MessageBytes::One(bytes) => bytes,
            MessageBytes::Many(parts) => {
                let mut whole = BytesMut::with_capacity(parts.iter().map(Bytes::len).sum());
                parts.iter().for_each(|part| whole.extend_from_slice(part));
                whole.freeze()
            }
        }
    }

    /// Copies the bytes to memory that is not shared with a datagram.
    pub(super) fn compact(&mut self) {
        match self {
            MessageBytes::One(bytes) => *bytes = Bytes::copy_from_slice(bytes),
            MessageBytes::Many(parts) => {
                parts.shrink_to_fit();
                for part in parts {
                    *part = Bytes::copy_from_slice(part);
                }
            }
        }
    }

    /// Appends `more`.
    pub(super) fn append(&mut self, more: MessageBytes) {
        let mut parts = match std::mem::replace(self, MessageBytes::Many(Vec::new())) {
            MessageBytes::One(bytes) => vec![bytes],
            MessageBytes::Many(parts) => parts,
        };
        match more {
            MessageBytes::One(bytes) => parts.push(bytes),
            MessageBytes::Many(mut more) => parts.append(&mut more),
        }
        *self = MessageBytes::Many(parts);
    }
}

/// A complete message for the application.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceivedMessage {
    /// Stream identifier.
    pub stream: u16,
    /// Payload Protocol Identifier as set by the peer's user.
    pub ppid: u32,
    /// Sent for unordered delivery.
    pub unordered: bool,
    /// Stream sequence number; meaningless if unordered.
    pub ssn: Ssn,
    /// TSN of its first chunk.
    pub tsn: Tsn,
    /// User data.
    pub payload: MessageBytes,
}

/// A message, or the next part of one in partial delivery (RFC 9260 §6.9, §11.1.7: the partial
/// flag). The parts of a message arrive in order and without holes. Until its end no other message
/// of its stream is delivered, but other streams continue.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceivedPart {
    /// Stream identifier.
    pub stream: u16,
    /// Payload Protocol Identifier as set by the peer's user.
    pub ppid: u32,
    /// Sent for unordered delivery.
    pub unordered: bool,
    /// Stream sequence number; meaningless if unordered.
    pub ssn: Ssn,
    /// TSN of one of its chunks: the first of the part, or of the message if messages are
    /// interleaved.
    pub tsn: Tsn,
    /// First part of the message.
    pub begins: bool,
    /// Last part of the message. With `begins` it is a complete message.
    pub ends: bool,
    /// User data.
    pub payload: MessageBytes,
}

impl From<ReceivedMessage> for ReceivedPart {
    #[inline]
    fn from(message: ReceivedMessage) -> Self {
        Self {
            stream: message.stream,
            ppid: message.ppid,
            unordered: message.unordered,
            ssn: message.ssn,
            tsn: message.tsn,
            begins: true,
            ends: true,
            payload: message.payload,
        }
    }
}

impl ReceivedPart {
    #[inline]
    pub(crate) fn into_message(self) -> ReceivedMessage {
        ReceivedMessage {
            stream: self.stream,
            ppid: self.ppid,
            unordered: self.unordered,
            ssn: self.ssn,
            tsn: self.tsn,
            payload: self.payload,
        }
    }
}
