//! Assembly of parts into complete messages, for users that do not read parts. The assembled data
//! counts as read and does not occupy the receive buffer, so it has a separate limit.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};

use super::message::{MessageBytes, ReceivedMessage, ReceivedPart};
use crate::lazy_box::LazyBox;

/// Maximum number of maximum-length messages that are assembled at the same time with interleaving.
const MAX_OVERLAPPING: usize = 16;

/// Maximum total size of these messages in bytes, unless a single message may be longer.
const MAX_TOGETHER: usize = 16 << 20;

/// Minimum capacity of an assembly buffer in bytes.
const MIN_ROOM: usize = 64;

/// Error: a message exceeds the maximum length for assembly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

/// Incomplete message. Its parts are copied into one buffer, so that a message of tiny chunks uses
/// little more memory than its own bytes.
#[derive(Debug)]
struct Pending {
    /// First part of the message, without the user data.
    first: ReceivedPart,
    bytes: BytesMut,
}

impl Pending {
    /// Appends a part of `bytes` bytes. If necessary, the capacity grows to the needed length plus
    /// a quarter, but not beyond `most` bytes. The unused capacity must be small, because no limit
    /// counts it.
    fn extend(&mut self, parts: &[Bytes], bytes: usize, most: usize) {
        let needed = self.bytes.len() + bytes;
        if needed > self.bytes.capacity() {
            let room = (needed + needed / 4).max(MIN_ROOM).min(most);
            let before = std::mem::replace(&mut self.bytes, BytesMut::with_capacity(room));
            self.bytes.extend_from_slice(&before);
        }
        parts
            .iter()
            .for_each(|part| self.bytes.extend_from_slice(part));
    }
}

/// Assembled parts of incomplete messages, with at most one message per stream.
#[derive(Debug)]
pub(super) struct MessageAssembler {
    pending: LazyBox<BTreeMap<u16, Pending>>,
    bytes: usize,
    /// Maximum length of one message in bytes.
    most: usize,
    /// Size of the receive buffer in bytes.
    buffer: usize,
    /// Maximum of all assembled data in bytes; without interleaving `most` plus `buffer`. The peer
    /// must then send messages one after the other, so they overlap by at most the contents of the
    /// receive buffer.
    most_in_all: usize,
}

impl MessageAssembler {
    #[inline(always)]
    pub fn new(most: usize, buffer: usize) -> Self {
        Self {
            pending: LazyBox::default(),
            bytes: 0,
            most,
            buffer,
            most_in_all: most.saturating_add(buffer),
        }
    }

    /// Adapts the limits to interleaving, with which one message of each stream may be incomplete.
    pub fn interleaves(&mut self, streams: u16) {
        let overlapping = usize::from(streams).clamp(1, MAX_OVERLAPPING);
        let together = self.most.saturating_mul(overlapping);
        let most = together.min(MAX_TOGETHER).max(self.most);
        self.most_in_all = most.saturating_add(self.buffer);
    }

    /// Adds a part of a message that is delivered in several parts. Returns the message if it is
    /// now complete. If the user has already read the beginning in parts, the rest of the message
    /// is skipped.
    pub fn add(&mut self, mut part: ReceivedPart) -> Result<Option<ReceivedMessage>, TooLong> {
        let (stream, ends) = (part.stream, part.ends);
        let more = std::mem::replace(&mut part.payload, MessageBytes::One(Bytes::new()));
        if part.begins {
            self.forget(stream);
            let bytes = BytesMut::new();
            let pending = Pending { first: part, bytes };
            self.pending.make().insert(stream, pending);
        }
        let pending = self.pending.existing();
        let Some(pending) = pending.and_then(|it| it.get_mut(&stream)) else {
            return Ok(None);
        };
        let more_bytes = more.len();
        let one_too_long = pending.bytes.len() + more_bytes > self.most;
        if one_too_long || self.bytes + more_bytes > self.most_in_all {
            self.pending = LazyBox::default();
            self.bytes = 0;
            return Err(TooLong);
        }
        self.bytes += more_bytes;
        pending.extend(more.parts(), more_bytes, self.most);
        if !ends {
            return Ok(None);
        }
        Ok(self.take(stream).map(ReceivedPart::into_message))
    }

    /// Removes and returns the assembled data of the stream's message.
    pub fn take(&mut self, stream: u16) -> Option<ReceivedPart> {
        let Pending { first, bytes } = self.pending.change(|it| it.remove(&stream)).flatten()?;
        self.bytes -= bytes.len();
        Some(ReceivedPart {
            payload: MessageBytes::One(bytes.freeze()),
            ..first
        })
    }

    /// Whether no data is assembled.
    #[inline]
    pub fn has_none(&self) -> bool {
        self.pending.is_empty()
    }

    /// Removes and returns the assembled data of some message, for a user who now reads parts.
    pub fn give_back(&mut self) -> Option<ReceivedPart> {
        let stream = *self.pending.keys().next()?;
        self.take(stream)
    }

    /// Drops the assembled data of this stream, because its message will not be completed.
    pub fn forget(&mut self, stream: u16) {
        let _ = self.take(stream);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sixteen messages of 256 KiB may be assembled at the same time, but not sixteen of 16 MiB,
    /// because the peer chooses how many messages it starts.
    #[test]
    fn interleaved_messages_share_a_bound() {
        let most_in_all = |most: usize, streams: u16| {
            let mut assembly = MessageAssembler::new(most, 1000);
            assembly.interleaves(streams);
            assembly.most_in_all
        };
        assert_eq!(most_in_all(256 << 10, 100), (4 << 20) + 1000);
        assert_eq!(most_in_all(256 << 10, 3), (768 << 10) + 1000);
        assert_eq!(most_in_all(16 << 20, 100), (16 << 20) + 1000);
        assert_eq!(most_in_all(64 << 20, 100), (64 << 20) + 1000);
    }

    /// For parts of any size, unused capacity is at most a quarter of the data, and never exceeds
    /// the maximum message length.
    #[test]
    fn little_space_is_kept_free() {
        let most = 100_000;
        for size in [1, 7, 1_400, 33_000] {
            let mut assembly = MessageAssembler::new(most, 1_000);
            let mut length = 0;
            while length + size <= most {
                let part = ReceivedPart {
                    stream: 1,
                    ppid: 0,
                    unordered: false,
                    ssn: Default::default(),
                    tsn: Default::default(),
                    begins: length == 0,
                    ends: length + 2 * size > most,
                    payload: MessageBytes::One(vec![length as u8; size].into()),
                };
                length += size;
                let whole = assembly.add(part).expect("not too long");
                if let Some(whole) = whole {
                    let bytes = whole.payload.into_bytes();
                    let expected = (0..length).map(|at| (at / size * size) as u8);
                    assert!(bytes.iter().copied().eq(expected), "parts of {size}");
                    assert!(length + size > most);
                    continue;
                }
                let room = assembly.pending[&1].bytes.capacity();
                let allowed = (length + length / 4).max(MIN_ROOM).min(most);
                assert!(room <= allowed, "{room} for {length} in parts of {size}");
            }
            assert!(assembly.has_none());
        }
    }
}
