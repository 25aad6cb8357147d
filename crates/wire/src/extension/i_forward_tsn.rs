//! I-FORWARD-TSN (RFC 8260 §2.3.1).

use bytes::{Bytes, BytesMut};

use super::{chunk_len, entries, put_chunk};
use crate::chunk::{DecodeError, fixed_part, kind};
use crate::encode::Encode;
use crate::packet::{CHUNK_HEADER, RawChunk};
use crate::serial::{Mid, Tsn};

/// Number of value bytes before the entries.
const FIXED: usize = 4;
/// Size of an entry (stream, U bit and MID), bytes.
const ENTRY: usize = 8;
/// The U bit of an entry. The 15 bits before it are reserved.
const UNORDERED: u8 = 0x01;

/// Entry for a stream. The receiver should no longer wait for the messages of this stream up to
/// this MID, either the ordered or the unordered ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SkippedMessage {
    /// Stream identifier.
    pub stream_id: u16,
    /// Whether the entry applies to the unordered messages of the stream.
    pub unordered: bool,
    /// Largest abandoned MID of these messages.
    pub mid: Mid,
}

/// Moves the cumulative TSN of the receiver past interleaved data that the sender has abandoned.
///
/// RFC 8260 §2.3.1:
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |   Type = 194  |     Flags     |             Length            |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                       New Cumulative TSN                      |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |      Stream Identifier 1      |           Reserved          |U|
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                      Message Identifier 1                     |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                              ...                              |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |      Stream Identifier N      |           Reserved          |U|
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                      Message Identifier N                     |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct IForwardTsn {
    /// The receiver must treat all TSNs up to this one as received.
    pub new_cumulative_tsn: Tsn,
    // Entries whose reserved bits were set to 0.
    entries: Bytes,
}

impl IForwardTsn {
    /// Length of an I-FORWARD-TSN without messages, bytes.
    pub const HEADER: usize = CHUNK_HEADER + FIXED;

    /// Number of messages that fit into `room` bytes.
    pub const fn skipped_within(room: usize) -> usize {
        room.saturating_sub(Self::HEADER) / ENTRY
    }

    /// Creates a chunk with the messages in `skipped`. Messages that do not fit into a chunk are
    /// omitted.
    pub fn new(new_cumulative_tsn: Tsn, skipped: impl IntoIterator<Item = SkippedMessage>) -> Self {
        const MAX: usize = (u16::MAX as usize - IForwardTsn::HEADER) / ENTRY;
        let mut entries = BytesMut::new();
        for message in skipped.into_iter().take(MAX) {
            entries.extend_from_slice(&message.stream_id.to_be_bytes());
            entries.extend_from_slice(&[0, u8::from(message.unordered)]);
            entries.extend_from_slice(&message.mid.0.to_be_bytes());
        }
        Self {
            new_cumulative_tsn,
            entries: entries.freeze(),
        }
    }

    /// Decodes a chunk of type I-FORWARD-TSN.
    ///
    /// # Errors
    /// The chunk is too short for its TSN, or ends within an entry.
    pub fn decode(raw: RawChunk) -> Result<Self, DecodeError> {
        let new_cumulative_tsn = Tsn(u32::from_be_bytes(*fixed_part::<FIXED>(&raw)?));
        let entries = entries(raw, FIXED, ENTRY)?;
        Ok(Self {
            new_cumulative_tsn,
            entries,
        })
    }

    /// The messages in the order of the packet. They may include messages of streams that do not
    /// exist.
    pub fn skipped(&self) -> impl ExactSizeIterator<Item = SkippedMessage> + Clone + '_ {
        self.entries
            .chunks_exact(ENTRY)
            .map(|entry| SkippedMessage {
                stream_id: u16::from_be_bytes([entry[0], entry[1]]),
                unordered: entry[3] & UNORDERED != 0,
                mid: Mid(u32::from_be_bytes([entry[4], entry[5], entry[6], entry[7]])),
            })
    }
}

impl std::fmt::Debug for IForwardTsn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IForwardTsn")
            .field("new_cumulative_tsn", &self.new_cumulative_tsn)
            .field("skipped", &self.skipped().collect::<Vec<_>>())
            .finish()
    }
}

impl Encode for IForwardTsn {
    fn encoded_len(&self) -> usize {
        chunk_len(FIXED, &self.entries)
    }

    fn encode(&self, out: &mut BytesMut) {
        let tsn = self.new_cumulative_tsn.0.to_be_bytes();
        put_chunk(kind::I_FORWARD_TSN, &tsn, &self.entries, out);
    }
}
