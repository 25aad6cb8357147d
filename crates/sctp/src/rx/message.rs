//! Types of received messages and parts, as delivered to the user.

use anabranch_wire::{Ssn, Tsn};
use bytes::{Bytes, BytesMut};

use crate::profile::Counts;

/// User data of a message: one slice of a packet, or several slices if it was fragmented.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageBytes {
    /// Data of a message that was received in one chunk.
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

    /// Number of bytes for which the message counts in the receiver window.
    #[inline]
    pub(super) fn counted(&self, counts: Counts) -> u64 {
        match self {
            MessageBytes::One(bytes) => counts.bytes(bytes.len()),
            MessageBytes::Many(parts) => parts.iter().map(|part| counts.bytes(part.len())).sum(),
        }
    }

    /// Number of chunks in which the message was received.
    #[inline]
    pub(super) fn chunks(&self) -> usize {
        self.parts().len()
    }

    /// Whether the user data is empty, which is never true for a received message.
    pub fn is_empty(&self) -> bool {
        self.parts().iter().all(Bytes::is_empty)
    }

    /// Slices in order.
    #[inline]
    pub fn parts(&self) -> &[Bytes] {
        match self {
            MessageBytes::One(bytes) => std::slice::from_ref(bytes),
            MessageBytes::Many(parts) => parts,
        }
    }

    /// Message as one contiguous buffer. Copies only if the message was fragmented.
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

    /// Copies the data to memory that is not shared with the rest of a packet.
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

    /// Appends the fragments of `more`.
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

/// Complete received message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceivedMessage {
    /// Stream identifier.
    pub stream: u16,
    /// Payload Protocol Identifier as set by the peer's user.
    pub ppid: u32,
    /// Whether the message was sent for unordered delivery.
    pub unordered: bool,
    /// Stream sequence number; meaningless for unordered messages.
    pub ssn: Ssn,
    /// TSN of the first chunk of the message.
    pub tsn: Tsn,
    /// User data of the message.
    pub payload: MessageBytes,
}

/// Complete message, or next part of a message in partial delivery (RFC 9260 §6.9, §11.1.7: the
/// partial flag). The parts of a message are delivered in order and without gaps. Between the parts
/// no other message of the same stream is delivered, but other streams continue.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceivedPart {
    /// Stream identifier.
    pub stream: u16,
    /// Payload Protocol Identifier as set by the peer's user.
    pub ppid: u32,
    /// Whether the message was sent for unordered delivery.
    pub unordered: bool,
    /// Stream sequence number; meaningless for unordered messages.
    pub ssn: Ssn,
    /// TSN of the first chunk of the part, or of the whole message if messages are interleaved.
    pub tsn: Tsn,
    /// Whether this is the first part of the message.
    pub begins: bool,
    /// Whether this is the last part of the message. If `begins` is also true, the message is
    /// complete.
    pub ends: bool,
    /// User data of this part.
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
