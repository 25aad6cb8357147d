//! The SCTP packet: a common header followed by chunks (RFC 9260 §3).

mod builder;
#[cfg(test)]
mod tests;

use bytes::{Buf, Bytes, BytesMut};

use crate::checksum;
use crate::encode::{Encode, padded, put_padding};
use crate::unrecognized::UnknownAction;

pub use crate::checksum::Checksum;
pub use builder::PacketBuilder;

/// Length of the common header, bytes.
pub const COMMON_HEADER: usize = 12;
/// Length of a chunk header, bytes.
pub const CHUNK_HEADER: usize = 4;

/// The common header without its checksum (RFC 9260 §3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommonHeader {
    /// Port of the sender.
    pub source_port: u16,
    /// Port of the receiver.
    pub destination_port: u16,
    /// Verification tag that the receiver has chosen; 0 in a packet that contains an INIT (RFC 9260
    /// §8.5).
    pub verification_tag: u32,
}

/// Reason why a datagram is not an SCTP packet. Such a datagram should be dropped silently and
/// counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// The datagram is shorter than the common header.
    #[error("{length} bytes are no common header")]
    TooShort {
        /// Length, bytes.
        length: usize,
    },
    /// The checksum is wrong.
    #[error("wrong checksum")]
    BadChecksum,
    /// A port is 0, which RFC 9260 §3.1 forbids.
    #[error("a port is 0")]
    PortZero,
    /// The packet has no chunk (RFC 9260 §3 requires at least one).
    #[error("no chunk")]
    NoChunk,
}

/// A received packet. Its chunks are decoded by [iterating](Packet::chunks).
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// The common header.
    pub header: CommonHeader,
    /// All bytes that one system call has received: this packet, and possibly others.
    block: &'a Bytes,
    datagram: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Parses the common header of `datagram` (the IP payload).
    ///
    /// # Errors
    /// Fails if the datagram is not an SCTP packet. The checksum is verified before any field that
    /// it protects is read.
    #[inline]
    pub fn parse(datagram: &'a Bytes, checksum: Checksum) -> Result<Self, PacketError> {
        Self::within(datagram, datagram, checksum)
    }

    /// Like [`Packet::parse`], for a packet that is part of `block`. Its user data becomes slices
    /// of `block`, so that packets received together do not each need a slice.
    ///
    /// # Errors
    /// See [`Packet::parse`].
    ///
    /// # Panics
    /// Panics when user data is sliced if `datagram` is not part of `block`.
    #[inline]
    pub fn within(
        block: &'a Bytes,
        datagram: &'a [u8],
        checksum: Checksum,
    ) -> Result<Self, PacketError> {
        let Some(&[s0, s1, d0, d1, t0, t1, t2, t3, ..]) = datagram.first_chunk::<COMMON_HEADER>()
        else {
            return Err(PacketError::TooShort {
                length: datagram.len(),
            });
        };
        if checksum == Checksum::Verify && !checksum::verify(datagram) {
            return Err(PacketError::BadChecksum);
        }
        let header = CommonHeader {
            source_port: u16::from_be_bytes([s0, s1]),
            destination_port: u16::from_be_bytes([d0, d1]),
            verification_tag: u32::from_be_bytes([t0, t1, t2, t3]),
        };
        if header.source_port == 0 || header.destination_port == 0 {
            return Err(PacketError::PortZero);
        }
        if datagram.len() == COMMON_HEADER {
            return Err(PacketError::NoChunk);
        }
        Ok(Self {
            header,
            block,
            datagram,
        })
    }

    /// Whether the checksum is correct. Intended for a packet that was parsed without verification.
    pub fn is_intact(&self) -> bool {
        checksum::verify(self.datagram)
    }

    /// The chunks in their order. After an error the rest of the packet cannot be decoded, so the
    /// iterator ends.
    #[inline]
    pub fn chunks(&self) -> Chunks<'a> {
        Chunks {
            block: self.block,
            datagram: self.datagram,
            at: COMMON_HEADER,
        }
    }
}

/// Invalid framing of a chunk. Chunks after it cannot be located.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChunkError {
    /// Fewer bytes are left than the length of a chunk header.
    #[error("{remaining} bytes left where a chunk's header needs 4")]
    Truncated {
        /// Number of bytes left.
        remaining: usize,
    },
    /// The length field is less than the length of the header.
    #[error("chunk of type {kind} says its length is {length}, less than its header")]
    LengthTooSmall {
        /// The chunk's type.
        kind: u8,
        /// Value of the length field.
        length: u16,
    },
    /// The chunk is longer than the rest of the packet.
    #[error("chunk of type {kind} says its length is {length}, but {remaining} bytes are left")]
    PastEnd {
        /// The chunk's type.
        kind: u8,
        /// Value of the length field.
        length: u16,
        /// Number of bytes left, header included.
        remaining: usize,
    },
    /// The packet ends within the padding, which is mandatory (RFC 9260 §3.2).
    #[error("chunk of type {kind} and length {length} lacks its padding")]
    MissingPadding {
        /// The chunk's type.
        kind: u8,
        /// Value of the length field.
        length: u16,
    },
}

/// Iterator over the chunks of a packet, see [`Packet::chunks`].
#[derive(Clone, Debug)]
pub struct Chunks<'a> {
    block: &'a Bytes,
    datagram: &'a [u8],
    at: usize,
}

impl<'a> Chunks<'a> {
    /// Iterates over chunks that have no common header before them.
    pub fn bare(chunks: &'a Bytes) -> Self {
        Self {
            block: chunks,
            datagram: chunks,
            at: 0,
        }
    }

    /// Length of the whole packet, bytes. A slice of a chunk keeps this amount of memory allocated.
    #[inline]
    pub fn packet_len(&self) -> usize {
        self.datagram.len()
    }

    /// The whole packet, as a slice of its block.
    pub fn packet_bytes(&self) -> Bytes {
        self.block.slice_ref(self.datagram)
    }

    /// Whether all chunks have been read.
    #[inline]
    pub fn is_at_end(&self) -> bool {
        self.at >= self.datagram.len()
    }

    /// Like [`Iterator::next`], but borrows the chunk. This avoids an update of the datagram's
    /// reference count.
    #[inline]
    pub fn next_frame(&mut self) -> Option<Result<Frame<'a>, ChunkError>> {
        let rest = &self.datagram[self.at..];
        if rest.is_empty() {
            return None;
        }
        match frame(rest) {
            Ok((kind, flags, length)) => {
                let at = self.at;
                self.at += padded(length);
                Some(Ok(Frame {
                    kind,
                    flags,
                    block: self.block,
                    datagram: self.datagram,
                    at,
                    length,
                }))
            }
            Err(error) => {
                self.at = self.datagram.len();
                Some(Err(error))
            }
        }
    }
}

impl Iterator for Chunks<'_> {
    type Item = Result<RawChunk, ChunkError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        Some(self.next_frame()?.map(|frame| frame.to_raw()))
    }
}

/// A chunk that is still part of its packet. Its header is decoded, and its value is not.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Chunk type.
    pub kind: u8,
    /// Chunk flags.
    pub flags: u8,
    block: &'a Bytes,
    datagram: &'a [u8],
    at: usize,
    length: usize,
}

impl<'a> Frame<'a> {
    /// Value without header and padding.
    #[inline]
    pub fn value(&self) -> &'a [u8] {
        &self.datagram[self.at + CHUNK_HEADER..self.at + self.length]
    }

    /// Value from byte `from` on, as a slice of the datagram. The value must have at least `from`
    /// bytes.
    #[inline(always)]
    pub(crate) fn value_from(&self, from: usize) -> Bytes {
        let begin = self.at + CHUNK_HEADER + from;
        self.slice(begin)
    }

    /// Bytes from offset `begin` of the packet to the end of the chunk.
    #[inline(always)]
    fn slice(&self, begin: usize) -> Bytes {
        self.block
            .slice_ref(&self.datagram[begin..self.at + self.length])
    }

    /// Bytes from this chunk to the end of the packet. An AUTH chunk authenticates these (RFC 4895
    /// §6.2).
    pub fn to_end(&self) -> &'a [u8] {
        &self.datagram[self.at..]
    }

    /// The encoded chunk, including its padding.
    pub fn padded(&self) -> &'a [u8] {
        &self.datagram[self.at..self.at + padded(self.length)]
    }

    /// Common header of the packet.
    pub fn common_header(&self) -> &'a [u8] {
        &self.datagram[..COMMON_HEADER]
    }

    /// Length of header and value, bytes.
    #[inline]
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// The chunk, as a slice of the datagram.
    #[inline]
    pub fn to_raw(self) -> RawChunk {
        RawChunk {
            kind: self.kind,
            flags: self.flags,
            whole: self.slice(self.at),
        }
    }
}

/// Type, flags and length of the chunk at the beginning of `rest`. The chunk and its padding do not
/// exceed `rest`.
#[inline]
pub(crate) fn frame(rest: &[u8]) -> Result<(u8, u8, usize), ChunkError> {
    let remaining = rest.len();
    let Some(&[kind, flags, high, low]) = rest.first_chunk::<CHUNK_HEADER>() else {
        return Err(ChunkError::Truncated { remaining });
    };
    let length = u16::from_be_bytes([high, low]);
    match usize::from(length) {
        ..CHUNK_HEADER => Err(ChunkError::LengthTooSmall { kind, length }),
        needed if needed > remaining => Err(ChunkError::PastEnd {
            kind,
            length,
            remaining,
        }),
        needed if padded(needed) > remaining => Err(ChunkError::MissingPadding { kind, length }),
        needed => Ok((kind, flags, needed)),
    }
}

/// An encoded chunk whose value is not yet decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawChunk {
    /// Chunk type.
    pub kind: u8,
    /// Chunk flags.
    pub flags: u8,
    whole: Bytes,
}

impl RawChunk {
    /// Value without header and padding.
    #[inline]
    pub fn value(&self) -> &[u8] {
        &self.whole[CHUNK_HEADER..]
    }

    /// Value without header and padding, as a slice of the datagram.
    #[inline]
    pub fn into_value(mut self) -> Bytes {
        self.whole.advance(CHUNK_HEADER);
        self.whole
    }

    /// The encoded chunk without padding. If its type is not recognized, these bytes are returned
    /// to the sender.
    #[inline]
    pub fn whole(&self) -> &Bytes {
        &self.whole
    }

    /// How the chunk must be handled if its type is not recognized.
    pub const fn action(&self) -> UnknownAction {
        UnknownAction::of_chunk(self.kind)
    }
}

impl Encode for RawChunk {
    fn encoded_len(&self) -> usize {
        padded(self.whole.len())
    }

    fn encode(&self, out: &mut BytesMut) {
        out.extend_from_slice(&self.whole);
        put_padding(out, self.whole.len());
    }
}
