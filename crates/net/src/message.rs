//! Messages and parts of messages.

use anabranch_sctp::{ReceivedMessage, ReceivedPart};
use bytes::Bytes;

/// A received message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// Stream.
    pub stream: u16,
    /// Payload Protocol Identifier, as set by the peer's user.
    pub ppid: u32,
    /// Sent for delivery without regard to the order of its stream.
    pub unordered: bool,
    /// The user data: a slice of the datagram if the message was in one, otherwise assembled from
    /// its fragments.
    pub bytes: Bytes,
}

impl From<ReceivedMessage> for Message {
    fn from(message: ReceivedMessage) -> Self {
        Self {
            stream: message.stream,
            ppid: message.ppid,
            unordered: message.unordered,
            bytes: message.payload.into_bytes(),
        }
    }
}

/// A message, or the next part of one whose end has not arrived yet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MessagePart {
    /// The message's stream: until the part that `ends` the message, no other data of this stream
    /// is delivered.
    pub stream: u16,
    /// Payload Protocol Identifier, as set by the peer's user.
    pub ppid: u32,
    /// Sent for delivery without regard to the order of its stream.
    pub unordered: bool,
    /// The message's number in its stream; meaningless if unordered.
    pub ssn: u16,
    /// The TSN of one of its chunks.
    pub tsn: u32,
    /// The cumulative TSN when the part was read (RFC 6458 §5.3.5).
    pub cumulative_tsn: u32,
    /// The message begins with this part.
    pub begins: bool,
    /// The message ends with this part. With `begins` it is a whole message.
    pub ends: bool,
    /// The user data that follows the previous part.
    pub bytes: Bytes,
}

impl From<MessagePart> for Message {
    fn from(part: MessagePart) -> Self {
        Self {
            stream: part.stream,
            ppid: part.ppid,
            unordered: part.unordered,
            bytes: part.bytes,
        }
    }
}

impl MessagePart {
    /// Converts a part of the protocol core, with the cumulative TSN.
    pub(crate) fn new(part: ReceivedPart, cumulative: u32) -> Self {
        Self {
            stream: part.stream,
            ppid: part.ppid,
            unordered: part.unordered,
            ssn: part.ssn.0,
            tsn: part.tsn.0,
            cumulative_tsn: cumulative,
            begins: part.begins,
            ends: part.ends,
            bytes: part.payload.into_bytes(),
        }
    }
}
