//! The SCTP packet: a common header and chunks (RFC 9260 §3).

mod builder;
#[cfg(test)]
mod tests;

use bytes::{Buf, Bytes, BytesMut};

use crate::checksum;
use crate::encode::{Encode, padded, put_padding};
use crate::unknown::UnknownAction;

pub use crate::checksum::Checksum;
pub use builder::PacketBuilder;

/// Length of the common header, bytes.
pub const COMMON_HEADER: usize = 12;
/// Length of a chunk's header, bytes.
pub const CHUNK_HEADER: usize = 4;

/// The common header, less its checksum (RFC 9260 §3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommonHeader {
    /// The sender's port.
    pub source_port: u16,
    /// The receiver's port.
    pub destination_port: u16,
    /// The tag the receiver chose; 0 in a packet that holds an INIT (RFC 9260 §8.5).
    pub verification_tag: u32,
}

/// Why a datagram is no packet. It is then to be dropped silently and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// It is shorter than the common header.
    #[error("{length} bytes are no common header")]
    TooShort {
        /// Its length, bytes.
        length: usize,
    },
    /// The checksum is wrong.
    #[error("wrong checksum")]
    BadChecksum,
    /// A port is 0, which RFC 9260 §3.1 forbids.
    #[error("a port is 0")]
    PortZero,
    /// There is not one chunk (RFC 9260 §3: a packet has one or more).
    #[error("no chunk")]
    NoChunk,
}

/// A packet as it was received; its chunks are read when [walked](Packet::chunks).
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// The common header.
    pub header: CommonHeader,
    /// What was received by one call: this packet, or this one among others.
    block: &'a Bytes,
    datagram: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Reads the common header of `datagram` (the IP payload).
    ///
    /// # Errors
    /// Says why there is no packet. The checksum is judged before anything that it protects.
    #[inline]
    pub fn parse(datagram: &'a Bytes, checksum: Checksum) -> Result<Self, PacketError> {
        Self::within(datagram, datagram, checksum)
    }

    /// As [`Packet::parse`], of a packet that lies within `block`, of which its user data becomes slices: for packets that were received
    /// together, none of which then needs a slice of its own.
    ///
    /// # Errors
    /// As [`Packet::parse`].
    ///
    /// # Panics
    /// User data is asked for, and `datagram` does not lie within `block`.
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

    /// Whether its checksum is right, where that was not asked when it was read.
    pub fn is_intact(&self) -> bool {
        checksum::verify(self.datagram)
    }

    /// The chunks in order. An error says that the rest of the packet cannot be read; no item follows it.
    #[inline]
    pub fn chunks(&self) -> Chunks<'a> {
        Chunks {
            block: self.block,
            datagram: self.datagram,
            at: COMMON_HEADER,
        }
    }
}

/// What is wrong with the frame of a chunk. Nothing after it can be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChunkError {
    /// Fewer bytes are left than a chunk's header has.
    #[error("{remaining} bytes left where a chunk's header needs 4")]
    Truncated {
        /// Bytes left.
        remaining: usize,
    },
    /// The length field does not even count the header.
    #[error("chunk of type {kind} says its length is {length}, less than its header")]
    LengthTooSmall {
        /// The chunk's type.
        kind: u8,
        /// Its length field.
        length: u16,
    },
    /// The chunk reaches past the end of the packet.
    #[error("chunk of type {kind} says its length is {length}, but {remaining} bytes are left")]
    PastEnd {
        /// The chunk's type.
        kind: u8,
        /// Its length field.
        length: u16,
        /// Bytes left, header included.
        remaining: usize,
    },
    /// The packet ends within the padding, which is not optional (RFC 9260 §3.2).
    #[error("chunk of type {kind} and length {length} lacks its padding")]
    MissingPadding {
        /// The chunk's type.
        kind: u8,
        /// Its length field.
        length: u16,
    },
}

/// Walks the chunks of a packet, see [`Packet::chunks`].
#[derive(Clone, Debug)]
pub struct Chunks<'a> {
    block: &'a Bytes,
    datagram: &'a [u8],
    at: usize,
}

impl<'a> Chunks<'a> {
    /// Of chunks that no common header stands before.
    pub fn bare(chunks: &'a Bytes) -> Self {
        Self {
            block: chunks,
            datagram: chunks,
            at: 0,
        }
    }

    /// Bytes of the whole packet: what a slice of a chunk keeps in memory.
    #[inline]
    pub fn packet_len(&self) -> usize {
        self.datagram.len()
    }

    /// Whether there is nothing more.
    #[inline]
    pub fn is_at_end(&self) -> bool {
        self.at >= self.datagram.len()
    }

    /// As [`Iterator::next`], without a slice of the datagram, which counts a reference.
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

/// A chunk where it lies in its packet: its header is read, its value not.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The type.
    pub kind: u8,
    /// The flags.
    pub flags: u8,
    block: &'a Bytes,
    datagram: &'a [u8],
    at: usize,
    length: usize,
}

impl<'a> Frame<'a> {
    /// The value, without header and padding.
    #[inline]
    pub fn value(&self) -> &'a [u8] {
        &self.datagram[self.at + CHUNK_HEADER..self.at + self.length]
    }

    /// The value from byte `from` on, as a slice of the datagram. The value must have so many.
    #[inline(always)]
    pub(crate) fn value_from(&self, from: usize) -> Bytes {
        let begin = self.at + CHUNK_HEADER + from;
        self.slice(begin)
    }

    /// From byte `begin` of the packet on to the chunk's end.
    #[inline(always)]
    fn slice(&self, begin: usize) -> Bytes {
        self.block
            .slice_ref(&self.datagram[begin..self.at + self.length])
    }

    /// The packet from this chunk on to its end: what an AUTH vouches for (RFC 4895 §6.2).
    pub fn to_end(&self) -> &'a [u8] {
        &self.datagram[self.at..]
    }

    /// The chunk as it lies in the packet, with its padding.
    pub fn padded(&self) -> &'a [u8] {
        &self.datagram[self.at..self.at + padded(self.length)]
    }

    /// The common header of its packet.
    pub fn common_header(&self) -> &'a [u8] {
        &self.datagram[..COMMON_HEADER]
    }

    /// Header and value, bytes.
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

/// Type, flags and length of the chunk that `rest` begins with; with its padding it lies within `rest`.
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

/// A chunk as it lies in the packet, its value not looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawChunk {
    /// The type.
    pub kind: u8,
    /// The flags.
    pub flags: u8,
    whole: Bytes,
}

impl RawChunk {
    /// The value, without header and padding.
    #[inline]
    pub fn value(&self) -> &[u8] {
        &self.whole[CHUNK_HEADER..]
    }

    /// The value, without header and padding, as a slice of the datagram.
    #[inline]
    pub fn into_value(mut self) -> Bytes {
        self.whole.advance(CHUNK_HEADER);
        self.whole
    }

    /// The chunk with its header and without padding, as it is echoed when it is not recognised.
    #[inline]
    pub fn whole(&self) -> &Bytes {
        &self.whole
    }

    /// What to do with it if its type is not recognised.
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
