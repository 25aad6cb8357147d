//! What goes in and what comes out.

use anabranch_sctp::{ReceivedMessage, ReceivedPart};
use bytes::Bytes;

/// A message as it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// Its stream.
    pub stream: u16,
    /// Payload Protocol Identifier, as the peer's user gave it.
    pub ppid: u32,
    /// It was sent to be delivered without regard to the order of its stream.
    pub unordered: bool,
    /// The user data: a slice of the datagram where the message came in one, otherwise put together from its fragments.
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

/// A message, or the next part of one whose end has not come yet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MessagePart {
    /// The message's stream: until the part that `ends` the message, nothing else of this stream comes.
    pub stream: u16,
    /// Payload Protocol Identifier, as the peer's user gave it.
    pub ppid: u32,
    /// It was sent to be delivered without regard to the order of its stream.
    pub unordered: bool,
    /// The message's number in its stream; meaningless if unordered.
    pub ssn: u16,
    /// The TSN of one of its chunks.
    pub tsn: u32,
    /// The last TSN before which none was missing when it was read (RFC 6458 §5.3.5).
    pub cumulative_tsn: u32,
    /// The message begins with this part.
    pub begins: bool,
    /// The message ends with this part. With `begins` it is a whole message.
    pub ends: bool,
    /// What has come of the user data since the part before.
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
    /// What the protocol gives, with the last TSN before which none is missing.
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
