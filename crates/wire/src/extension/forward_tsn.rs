//! FORWARD TSN (RFC 3758 §3.2).

use bytes::{Bytes, BytesMut};

use super::{chunk_len, entries, put_chunk};
use crate::chunk::{DecodeError, fixed_part, kind};
use crate::encode::Encode;
use crate::packet::{CHUNK_HEADER, RawChunk};
use crate::serial::{Ssn, Tsn};

/// Number of value bytes before the entries.
const FIXED: usize = 4;
/// Size of an entry (stream and SSN), bytes.
const ENTRY: usize = 4;

/// Entry for a stream. The receiver should no longer wait for ordered messages of this stream up to
/// this SSN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SkippedStream {
    /// Stream identifier.
    pub stream_id: u16,
    /// Largest abandoned SSN of the stream.
    pub ssn: Ssn,
}

/// Moves the cumulative TSN of the receiver past data that the sender has abandoned.
///
/// RFC 3758 §3.2:
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |   Type = 192  |     Flags     |             Length            |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                       New Cumulative TSN                      |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |            Stream 1           |       Stream Sequence 1       |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                              ...                              |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |            Stream N           |       Stream Sequence N       |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ForwardTsn {
    /// The receiver must treat all TSNs up to this one as received.
    pub new_cumulative_tsn: Tsn,
    entries: Bytes,
}

impl ForwardTsn {
    /// Length of a FORWARD TSN without streams, bytes.
    pub const HEADER: usize = CHUNK_HEADER + FIXED;

    /// Number of streams that fit into `room` bytes.
    pub const fn skipped_within(room: usize) -> usize {
        room.saturating_sub(Self::HEADER) / ENTRY
    }

    /// Creates a chunk with the streams in `skipped`. Streams that do not fit into a chunk are
    /// omitted. Streams of unordered messages are not listed (RFC 3758 §3.2).
    pub fn new(new_cumulative_tsn: Tsn, skipped: &[SkippedStream]) -> Self {
        const MAX: usize = (u16::MAX as usize - ForwardTsn::HEADER) / ENTRY;
        let mut entries = BytesMut::with_capacity(skipped.len().min(MAX) * ENTRY);
        for SkippedStream { stream_id, ssn } in skipped.iter().take(MAX) {
            entries.extend_from_slice(&stream_id.to_be_bytes());
            entries.extend_from_slice(&ssn.0.to_be_bytes());
        }
        Self {
            new_cumulative_tsn,
            entries: entries.freeze(),
        }
    }

    /// Decodes a chunk of type FORWARD TSN.
    ///
    /// # Errors
    /// The chunk is too short for its TSN, or ends within an entry.
    pub fn decode(raw: RawChunk) -> Result<Self, DecodeError> {
        let new_cumulative_tsn = Tsn(u32::from_be_bytes(*fixed_part::<FIXED>(&raw)?));
        Ok(Self {
            new_cumulative_tsn,
            entries: entries(raw, FIXED, ENTRY)?,
        })
    }

    /// The streams in the order of the packet. They may include streams that do not exist.
    pub fn skipped(&self) -> impl ExactSizeIterator<Item = SkippedStream> + Clone + '_ {
        self.entries.chunks_exact(ENTRY).map(|entry| SkippedStream {
            stream_id: u16::from_be_bytes([entry[0], entry[1]]),
            ssn: Ssn(u16::from_be_bytes([entry[2], entry[3]])),
        })
    }
}

impl std::fmt::Debug for ForwardTsn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ForwardTsn")
            .field("new_cumulative_tsn", &self.new_cumulative_tsn)
            .field("skipped", &self.skipped().collect::<Vec<_>>())
            .finish()
    }
}

impl Encode for ForwardTsn {
    fn encoded_len(&self) -> usize {
        chunk_len(FIXED, &self.entries)
    }

    fn encode(&self, out: &mut BytesMut) {
        let tsn = self.new_cumulative_tsn.0.to_be_bytes();
        put_chunk(kind::FORWARD_TSN, &tsn, &self.entries, out);
    }
}
