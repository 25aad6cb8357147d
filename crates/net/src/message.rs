//! Messages and parts of messages.

use anabranch_sctp::{ReceivedMessage, ReceivedPart};
use bytes::Bytes;

/// A received message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// Stream on which the message arrived.
    pub stream: u16,
    /// Payload Protocol Identifier that the peer's application has set.
    pub ppid: u32,
    /// True if the message was sent unordered, and is delivered regardless of the order of its
    /// stream.
    pub unordered: bool,
    /// The user data. If the message arrived in one datagram, this is a slice of its buffer;
    /// otherwise the fragments are copied into one buffer.
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

/// A whole message, or the next part of a message whose end has not arrived yet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MessagePart {
    /// Stream on which the message arrived. Until the part that `ends` the message, no other data
    /// of this stream is delivered.
    pub stream: u16,
    /// Payload Protocol Identifier that the peer's application has set.
    pub ppid: u32,
    /// True if the message was sent unordered, and is delivered regardless of the order of its
    /// stream.
    pub unordered: bool,
    /// Sequence number of the message in its stream; meaningless if the message is unordered.
    pub ssn: u16,
    /// The TSN of one of the chunks of this part.
    pub tsn: u32,
    /// The cumulative TSN when the part was read (RFC 6458 §5.3.5).
    pub cumulative_tsn: u32,
    /// True for the first part of a message.
    pub begins: bool,
    /// True for the last part of a message. A part that `begins` and `ends` is a whole message.
    pub ends: bool,
    /// The user data of this part.
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
    /// Converts a part from the protocol core; `cumulative` is the cumulative TSN.
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
