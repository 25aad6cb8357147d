//! TCP segments (RFC 9293 §3.1).

mod fast_header;
mod options;
#[cfg(test)]
mod tests;

use std::net::IpAddr;

use bytes::{Buf, Bytes, BytesMut};

use crate::checksum::{Checksum, internet_tcp};
use crate::serial::SeqNumber;

pub use fast_header::{FastHeader, is_intact};
pub use options::{
    AccurateEcn, EcnFieldOrder, MAX_OPTIONS, Options, SackBlock, SackBlocks, Timestamps,
};

/// Length of the header without options, bytes.
pub const HEADER: usize = 20;
/// Offset of the checksum field.
const CHECKSUM: usize = 16;

/// The control bits (RFC 9293 §3.1, RFC 9768 §3.1.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u16);

impl Flags {
    /// No control bit.
    pub const NONE: Self = Self(0);
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push function.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgment number is valid.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer is valid.
    pub const URG: Self = Self(0x20);
    /// ECN echo (RFC 3168 §6.1).
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced (RFC 3168 §6.1).
    pub const CWR: Self = Self(0x80);
    /// Accurate ECN (RFC 9768 §3.1.1).
    pub const AE: Self = Self(0x100);

    /// Whether every bit of `other` is set.
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The flags AE, CWR and ECE as a number. This number is the ACE field (RFC 9768 §3.2.2, figure
    /// 3).
    #[inline]
    pub const fn ace(self) -> u8 {
        ((self.0 >> 6) & 7) as u8
    }

    /// The flags AE, CWR and ECE for which [`Self::ace`] returns `number` modulo 8.
    #[inline]
    pub const fn from_ace(number: u64) -> Self {
        Self(((number & 7) as u16) << 6)
    }
}

impl std::ops::BitOr for Flags {
    type Output = Self;

    #[inline]
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Header and options of a segment. The data offset and the checksum are computed when the header
/// is encoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Port of the sender.
    pub source_port: u16,
    /// Port of the receiver.
    pub destination_port: u16,
    /// Sequence number of the first payload byte, or of the SYN (SEG.SEQ).
    pub sequence_number: SeqNumber,
    /// Next sequence number that the sender expects (SEG.ACK). Valid if the ACK bit is set.
    pub acknowledgment_number: SeqNumber,
    /// The control bits.
    pub flags: Flags,
    /// Receive window of the sender in bytes (SEG.WND). Except in a SYN, it is shifted right by the
    /// window scale of the sender.
    pub window: u16,
    /// Offset of the byte after the urgent data (SEG.UP). Valid if the URG bit is set.
    pub urgent_pointer: u16,
    /// The options.
    pub options: Options,
}

impl Header {
    /// Length including options, bytes; a multiple of 4 from 20 to 60.
    #[inline]
    pub fn encoded_len(&self) -> usize {
        HEADER + self.options.encoded_len()
    }

    /// Appends a segment with this header and the slices of `payload`, and returns its length in
    /// bytes. If `checksum` is given, the checksum is written. Otherwise the field is 0.
    pub fn encode<'p>(
        &self,
        out: &mut BytesMut,
        addresses: (IpAddr, IpAddr),
        checksum: bool,
        payload: impl IntoIterator<Item = &'p [u8]>,
    ) -> usize {
        let start = out.len();
        self.write(out);
        for piece in payload {
            out.extend_from_slice(piece);
        }
        if checksum {
            fill_checksum(&mut out[start..], addresses);
        }
        out.len() - start
    }

    /// The fields before the options, except the urgent pointer.
    fn fixed(&self) -> FastHeader {
        FastHeader {
            source_port: self.source_port,
            destination_port: self.destination_port,
            sequence_number: self.sequence_number,
            acknowledgment_number: self.acknowledgment_number,
            flags: self.flags,
            window: self.window,
        }
    }

    /// Appends the header and its options. The checksum field is 0.
    #[inline]
    fn write(&self, out: &mut BytesMut) {
        let mut options = [0; MAX_OPTIONS];
        let length = if self.options.are_none() {
            0
        } else {
            self.options.encode(&mut options)
        };
        let mut bytes = self.fixed().bytes(length);
        bytes[18..20].copy_from_slice(&self.urgent_pointer.to_be_bytes());
        // The fixed part and the options are appended separately: most headers have no options, and
        // an append of constant length needs no function call.
        out.extend_from_slice(&bytes);
        if length > 0 {
            out.extend_from_slice(&options[..length]);
        }
    }
}

/// Computes the checksum of a segment and writes it. The checksum field must be 0 before.
fn fill_checksum(segment: &mut [u8], (source, destination): (IpAddr, IpAddr)) {
    let sum = internet_tcp(source, destination, segment);
    segment[CHECKSUM..CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
}

/// A received segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// The header.
    pub header: Header,
    /// The data, a slice of the datagram.
    pub payload: Bytes,
}

/// Reason why a datagram is not a TCP segment. Such a datagram should be dropped silently and
/// counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SegmentError {
    /// The datagram is shorter than a TCP header.
    #[error("{length} bytes are no TCP header")]
    TooShort {
        /// Length, bytes.
        length: usize,
    },
    /// The data offset points into the fixed part of the header or past the end of the segment.
    #[error("data offset of {offset} bytes in a segment of {length}")]
    BadDataOffset {
        /// The data offset, bytes.
        offset: usize,
        /// The segment's length, bytes.
        length: usize,
    },
    /// The checksum is wrong.
    #[error("wrong checksum")]
    BadChecksum,
    /// The length of an option is 0 or 1, exceeds the header, or is invalid for its kind (RFC 9293
    /// §3.1, MUST-7).
    #[error("option of kind {kind} with an illegal length")]
    BadOption {
        /// Kind of the option.
        kind: u8,
    },
}

impl Segment {
    /// Parses `datagram` (the IP payload), sent from `source` to `destination`.
    ///
    /// # Errors
    /// Fails if the datagram is not a TCP segment. The checksum is verified before any field that
    /// it protects is read.
    pub fn parse(
        datagram: &Bytes,
        addresses: (IpAddr, IpAddr),
        checksum: Checksum,
    ) -> Result<Self, SegmentError> {
        Self::parse_owned(datagram.clone(), addresses, checksum)
    }

    /// Like [`Segment::parse`], for a datagram that the caller owns. Its bytes become the payload,
    /// so the datagram's reference count is not updated.
    ///
    /// # Errors
    /// See [`Segment::parse`].
    #[inline]
    pub fn parse_owned(
        mut datagram: Bytes,
        addresses: (IpAddr, IpAddr),
        checksum: Checksum,
    ) -> Result<Self, SegmentError> {
        let length = datagram.len();
        let Some(fixed) = datagram.first_chunk::<HEADER>() else {
            return Err(SegmentError::TooShort { length });
        };
        if checksum == Checksum::Verify && !is_intact(&datagram, addresses) {
            return Err(SegmentError::BadChecksum);
        }
        let offset = usize::from(fixed[12] >> 4) * 4;
        let Some(options) = datagram.get(HEADER..offset) else {
            return Err(SegmentError::BadDataOffset { offset, length });
        };
        let plain = FastHeader::of(fixed);
        let header = Header {
            source_port: plain.source_port,
            destination_port: plain.destination_port,
            sequence_number: plain.sequence_number,
            acknowledgment_number: plain.acknowledgment_number,
            flags: plain.flags,
            window: plain.window,
            urgent_pointer: u16::from_be_bytes([fixed[18], fixed[19]]),
            options: if options.is_empty() {
                Options::default()
            } else {
                Options::parse(options).map_err(|kind| SegmentError::BadOption { kind })?
            },
        };
        datagram.advance(offset);
        Ok(Self {
            header,
            payload: datagram,
        })
    }

    /// Appends the segment and returns its length in bytes, see [`Header::encode`].
    pub fn encode(&self, out: &mut BytesMut, addresses: (IpAddr, IpAddr), checksum: bool) -> usize {
        self.header
            .encode(out, addresses, checksum, [&self.payload[..]])
    }

    /// Length in sequence numbers (SEG.LEN): the length of the payload, and one for each of SYN and
    /// FIN.
    pub fn sequence_len(&self) -> u32 {
        let control = |bit| u32::from(self.header.flags.contains(bit));
        self.payload.len() as u32 + control(Flags::SYN) + control(Flags::FIN)
    }
}
