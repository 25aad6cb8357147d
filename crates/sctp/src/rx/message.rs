//! A message as the application gets it.

use anabranch_wire::Ssn;
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
    pub fn len(&self) -> usize {
        self.parts().iter().map(Bytes::len).sum()
    }

    /// Whether there is none; a received message always has some.
    pub fn is_empty(&self) -> bool {
        self.parts().iter().all(Bytes::is_empty)
    }

    /// The slices, in order.
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
}

/// A whole message, ready for the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedMessage {
    /// Its stream.
    pub stream: u16,
    /// Payload Protocol Identifier, as the peer's user gave it.
    pub ppid: u32,
    /// It was sent to be delivered without regard to the order of the stream.
    pub unordered: bool,
    /// Its number in the stream; meaningless if unordered.
    pub ssn: Ssn,
    /// The user data.
    pub payload: MessageBytes,
}
