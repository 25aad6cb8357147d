//! A message as the application gets it.

use anabranch_wire::{Ssn, Tsn};
use bytes::{Bytes, BytesMut};

/// User data of a message: one slice of a datagram, or several if it came in fragments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageBytes {
    /// It came in one chunk.
    One(Bytes),
    /// Its fragments in order.
    Many(Vec<Bytes>),
}

impl MessageBytes {
    /// Bytes of user data.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            MessageBytes::One(bytes) => bytes.len(),
            MessageBytes::Many(parts) => parts.iter().map(Bytes::len).sum(),
        }
    }

    /// Chunks that it came in.
    #[inline]
    pub(super) fn chunks(&self) -> usize {
        match self {
            MessageBytes::One(_) => 1,
            MessageBytes::Many(parts) => parts.len(),
        }
    }

    /// Whether there is none; a received message always has some.
    pub fn is_empty(&self) -> bool {
        self.parts().iter().all(Bytes::is_empty)
    }

    /// The slices, in order.
    #[inline]
    pub fn parts(&self) -> &[Bytes] {
        match self {
            MessageBytes::One(bytes) => std::slice::from_ref(bytes),
            MessageBytes::Many(parts) => parts,
        }
    }

    /// The message in one piece; copies only if it came in fragments.
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

    /// The same bytes in memory of their own.
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

    /// Puts `more` behind.
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

/// A whole message, ready for the application.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceivedMessage {
    /// Its stream.
    pub stream: u16,
    /// Payload Protocol Identifier, as the peer's user gave it.
    pub ppid: u32,
    /// It was sent to be delivered without regard to the order of the stream.
    pub unordered: bool,
    /// Its number in the stream; meaningless if unordered.
    pub ssn: Ssn,
    /// The TSN of its first chunk.
    pub tsn: Tsn,
    /// The user data.
    pub payload: MessageBytes,
}

/// A message, or the next part of one that is delivered before its end has come (RFC 9260 §6.9, §11.1.7: the partial
/// flag). Parts of one message come in order and without holes; until its end nothing else of its stream comes, but other
/// streams go on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceivedPart {
    /// The stream of the message.
    pub stream: u16,
    /// Payload Protocol Identifier, as the peer's user gave it.
    pub ppid: u32,
    /// The message was sent to be delivered without regard to the order of the stream.
    pub unordered: bool,
    /// Its number in the stream; meaningless if unordered.
    pub ssn: Ssn,
    /// The TSN of one of its chunks: the first of the part or, where messages are interleaved, of the message.
    pub tsn: Tsn,
    /// The message begins with this part.
    pub begins: bool,
    /// The message ends with this part. With `begins` it is a whole message.
    pub ends: bool,
    /// The user data.
    pub payload: MessageBytes,
}

impl From<ReceivedMessage> for ReceivedPart {
    #[inline]
    fn from(message: ReceivedMessage) -> Self {
        Self::whole(message)
    }
}

impl ReceivedPart {
    #[inline]
    pub(super) fn whole(message: ReceivedMessage) -> Self {
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
