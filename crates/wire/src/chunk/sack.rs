//! SACK (RFC 9260 §3.3.4).

use bytes::{Buf, Bytes, BytesMut};

use crate::chunk::{DecodeError, fixed_part, fixed_part_of, kind};
use crate::encode::{Encode, chunk_header};
use crate::packet::{Frame, RawChunk};
use crate::serial::Tsn;

/// Number of value bytes before the gap blocks.
const FIXED: usize = 12;
/// Size of a Gap Ack Block and of a duplicate TSN, bytes.
const ENTRY: usize = 4;

/// A contiguous range of TSNs that were received after the cumulative TSN. The numbers are offsets
/// from the cumulative TSN, both inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GapAckBlock {
    /// Offset of the first TSN. In a valid block it is 2 or greater.
    pub start: u16,
    /// Offset of the last TSN. In a valid block it is not less than `start`.
    pub end: u16,
}

/// Reports the received TSNs. Gap Ack Blocks and duplicates are read from the packet during
/// iteration.
///
/// RFC 9260 §3.3.4:
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |    Type = 3   |     Flags     |             Length            |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                       Cumulative TSN Ack                      |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |           Advertised Receiver Window Credit (a_rwnd)          |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |       Gap Ack Blocks (N)      |       Duplicate TSNs (M)      |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |     Gap Ack Block 1 Start     |      Gap Ack Block 1 End      |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                              ...                              |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |     Gap Ack Block N Start     |      Gap Ack Block N End      |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                        Duplicate TSN 1                        |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                              ...                              |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                        Duplicate TSN M                        |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Sack<B = Bytes> {
    /// Last TSN received before the first gap.
    pub cumulative_tsn_ack: Tsn,
    /// Advertised receiver window credit, bytes.
    pub a_rwnd: u32,
    gap_block_count: u16,
    /// Gap Ack Blocks, followed by duplicate TSNs.
    entries: B,
}

impl Sack {
    /// Length of a SACK without Gap Ack Blocks and duplicate TSNs, bytes.
    pub const HEADER: usize = 16;

    /// Number of Gap Ack Blocks that fit into `room` bytes together with `duplicates` duplicate
    /// TSNs.
    pub const fn gap_blocks_within(room: usize, duplicates: usize) -> usize {
        (room.saturating_sub(Self::HEADER) / ENTRY).saturating_sub(duplicates)
    }

    #[inline]
    pub(super) fn decode(raw: RawChunk) -> Result<Self, DecodeError> {
        let fields = Fields::read(fixed_part::<FIXED>(&raw)?, raw.whole().len())?;
        let mut entries = raw.into_value();
        entries.advance(FIXED);
        entries.truncate(fields.counted);
        Ok(fields.with(entries))
    }
}

/// Fields before the entries, and the size of the entries.
struct Fields {
    cumulative_tsn_ack: Tsn,
    a_rwnd: u32,
    gap_block_count: u16,
    counted: usize,
}

impl Fields {
    /// Decodes the fixed part of a chunk of `length` bytes.
    #[inline]
    fn read(fixed: &[u8; FIXED], length: usize) -> Result<Self, DecodeError> {
        let &[c0, c1, c2, c3, w0, w1, w2, w3, g0, g1, d0, d1] = fixed;
        let (gap_blocks, duplicates) = (u16::from_be_bytes([g0, g1]), u16::from_be_bytes([d0, d1]));
        let counted = (usize::from(gap_blocks) + usize::from(duplicates)) * ENTRY;
        if Sack::HEADER + counted > length {
            return Err(DecodeError::SackCounts {
                gap_blocks,
                duplicates,
                length,
            });
        }
        Ok(Self {
            cumulative_tsn_ack: Tsn(u32::from_be_bytes([c0, c1, c2, c3])),
            a_rwnd: u32::from_be_bytes([w0, w1, w2, w3]),
            gap_block_count: gap_blocks,
            counted,
        })
    }

    #[inline]
    fn with<B>(self, entries: B) -> Sack<B> {
        Sack {
            cumulative_tsn_ack: self.cumulative_tsn_ack,
            a_rwnd: self.a_rwnd,
            gap_block_count: self.gap_block_count,
            entries,
        }
    }
}

impl<'a> Sack<&'a [u8]> {
    /// Decodes a chunk of type SACK that is still part of its packet.
    ///
    /// # Errors
    /// The chunk is shorter than its header, or than the entries that it announces.
    #[inline]
    pub fn read(frame: &Frame<'a>) -> Result<Self, DecodeError> {
        let fields = Fields::read(fixed_part_of::<FIXED>(frame)?, frame.length())?;
        let entries = &frame.value()[FIXED..FIXED + fields.counted];
        Ok(fields.with(entries))
    }
}

impl<B: AsRef<[u8]>> Sack<B> {
    /// The Gap Ack Blocks in the order of the packet, including invalid ones.
    #[inline]
    pub fn gap_blocks(&self) -> impl ExactSizeIterator<Item = GapAckBlock> + Clone + '_ {
        self.entries.as_ref()[..usize::from(self.gap_block_count) * ENTRY]
            .chunks_exact(ENTRY)
            .map(|entry| GapAckBlock {
                start: u16::from_be_bytes([entry[0], entry[1]]),
                end: u16::from_be_bytes([entry[2], entry[3]]),
            })
    }

    /// Whether there are Gap Ack Blocks, including invalid ones.
    #[inline]
    pub fn has_gaps(&self) -> bool {
        self.gap_block_count > 0
    }

    /// TSNs received more than once since the last SACK, one entry for each repetition.
    #[inline]
    pub fn duplicates(&self) -> impl ExactSizeIterator<Item = Tsn> + Clone + '_ {
        self.entries.as_ref()[usize::from(self.gap_block_count) * ENTRY..]
            .chunks_exact(ENTRY)
            .map(|entry| Tsn(u32::from_be_bytes([entry[0], entry[1], entry[2], entry[3]])))
    }
}

impl<B: AsRef<[u8]>> std::fmt::Debug for Sack<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sack")
            .field("cumulative_tsn_ack", &self.cumulative_tsn_ack)
            .field("a_rwnd", &self.a_rwnd)
            .field("gap_blocks", &self.gap_blocks().collect::<Vec<_>>())
            .field("duplicates", &self.duplicates().collect::<Vec<_>>())
            .finish()
    }
}

impl Encode for Sack {
    fn encoded_len(&self) -> usize {
        Self::HEADER + self.entries.len()
    }

    fn encode(&self, out: &mut BytesMut) {
        let duplicates = self.entries.len() / ENTRY - usize::from(self.gap_block_count);
        let counts = (usize::from(self.gap_block_count), duplicates);
        out.extend_from_slice(&header(self.cumulative_tsn_ack, self.a_rwnd, counts));
        out.extend_from_slice(&self.entries);
    }
}

/// A SACK to be sent, encoded directly from the gap list of the receiver.
///
/// The caller must ensure that gaps and duplicates fit the packet ([`Sack::gap_blocks_within`]).
/// Entries that do not fit into a chunk are omitted.
#[derive(Clone, Debug)]
pub struct OutgoingSack<'a, G> {
    /// Last TSN received before the first gap.
    pub cumulative_tsn_ack: Tsn,
    /// Advertised receiver window credit, bytes.
    pub a_rwnd: u32,
    /// The Gap Ack Blocks in ascending order.
    pub gap_blocks: G,
    /// TSNs received more than once since the last SACK.
    pub duplicates: &'a [Tsn],
}

impl<G: ExactSizeIterator<Item = GapAckBlock> + Clone> OutgoingSack<'_, G> {
    /// Number of Gap Ack Blocks and number of duplicate TSNs that fit into a chunk.
    fn counts(&self) -> (usize, usize) {
        const MAX: usize = (u16::MAX as usize - Sack::HEADER) / ENTRY;
        let gap_blocks = self.gap_blocks.len().min(MAX);
        (gap_blocks, self.duplicates.len().min(MAX - gap_blocks))
    }

    /// The same SACK in the form that a receiver gets.
    pub fn to_sack(&self) -> Sack {
        let mut bytes = BytesMut::with_capacity(self.encoded_len());
        self.encode(&mut bytes);
        Sack {
            cumulative_tsn_ack: self.cumulative_tsn_ack,
            a_rwnd: self.a_rwnd,
            gap_block_count: self.counts().0 as u16,
            entries: bytes.freeze().slice(Sack::HEADER..),
        }
    }
}

impl<G: ExactSizeIterator<Item = GapAckBlock> + Clone> Encode for OutgoingSack<'_, G> {
    #[inline]
    fn encoded_len(&self) -> usize {
        let (gap_blocks, duplicates) = self.counts();
        Sack::HEADER + (gap_blocks + duplicates) * ENTRY
    }

    #[inline]
    fn encode(&self, out: &mut BytesMut) {
        let (gap_blocks, duplicates) = self.counts();
        out.extend_from_slice(&header(
            self.cumulative_tsn_ack,
            self.a_rwnd,
            (gap_blocks, duplicates),
        ));
        let from = out.len();
        out.resize(from + gap_blocks * ENTRY, 0);
        // The compiler vectorizes this loop if the blocks come from a slice.
        let entries = out[from..].chunks_exact_mut(ENTRY);
        for (entry, GapAckBlock { start, end }) in entries.zip(self.gap_blocks.clone()) {
            let both = u32::from(start) << 16 | u32::from(end);
            entry.copy_from_slice(&both.to_be_bytes());
        }
        for tsn in &self.duplicates[..duplicates] {
            out.extend_from_slice(&tsn.0.to_be_bytes());
        }
    }
}

/// Chunk header and fixed part of a SACK.
#[inline]
fn header(
    cumulative_tsn_ack: Tsn,
    a_rwnd: u32,
    (gap_blocks, duplicates): (usize, usize),
) -> [u8; Sack::HEADER] {
    let mut bytes = [0; Sack::HEADER];
    let length = Sack::HEADER + (gap_blocks + duplicates) * ENTRY;
    bytes[0..4].copy_from_slice(&chunk_header(kind::SACK, 0, length));
    bytes[4..8].copy_from_slice(&cumulative_tsn_ack.0.to_be_bytes());
    bytes[8..12].copy_from_slice(&a_rwnd.to_be_bytes());
    bytes[12..14].copy_from_slice(&(gap_blocks as u16).to_be_bytes());
    bytes[14..16].copy_from_slice(&(duplicates as u16).to_be_bytes());
    bytes
}
