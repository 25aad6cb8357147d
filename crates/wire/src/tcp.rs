//! TCP segments (RFC 9293 §3.1).

mod options;
mod plain;
#[cfg(test)]
mod tests;

use std::net::IpAddr;

use bytes::{Buf, Bytes, BytesMut};

use crate::checksum::{Checksum, internet_tcp};
use crate::serial::SeqNumber;

pub use options::{MAX_OPTIONS, Options, SackBlock, SackBlocks, Timestamps};
pub use plain::{Plain, is_intact};

/// Length of the header without options, bytes.
pub const HEADER: usize = 20;
/// Offset of the checksum field.
const CHECKSUM: usize = 16;

/// The control bits (RFC 9293 §3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// No bit.
    pub const NONE: Flags = Flags(0);
    /// No more data from the sender.
    pub const FIN: Flags = Flags(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Flags = Flags(0x02);
    /// Reset the connection.
    pub const RST: Flags = Flags(0x04);
    /// Push function.
    pub const PSH: Flags = Flags(0x08);
    /// The acknowledgment number counts.
    pub const ACK: Flags = Flags(0x10);
    /// The urgent pointer counts.
    pub const URG: Flags = Flags(0x20);
    /// ECN echo (RFC 3168 §6.1).
    pub const ECE: Flags = Flags(0x40);
    /// Congestion window reduced (RFC 3168 §6.1).
    pub const CWR: Flags = Flags(0x80);

    /// Whether every bit of `other` is set.
    #[inline]
    pub const fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
}

impl std::ops::BitOr for Flags {
    type Output = Flags;

    #[inline]
    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

/// A segment's header and options; data offset and checksum are reckoned when it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The sender's port.
    pub source_port: u16,
    /// The receiver's port.
    pub destination_port: u16,
    /// Number of the first byte of the payload, or of the SYN (SEG.SEQ).
    pub sequence_number: SeqNumber,
    /// Number of the next byte that the sender expects; counts with the ACK bit (SEG.ACK).
    pub acknowledgment_number: SeqNumber,
    /// The control bits.
    pub flags: Flags,
    /// Bytes the sender is ready to take, right-shifted by its window scale except in a SYN (SEG.WND).
    pub window: u16,
    /// Offset of the byte after urgent data; counts with the URG bit (SEG.UP).
    pub urgent_pointer: u16,
    /// The options.
    pub options: Options,
}

impl Header {
    /// Length with options, bytes; a multiple of 4 from 20 to 60.
    #[inline]
    pub fn encoded_len(&self) -> usize {
        HEADER + self.options.encoded_len()
    }

    /// Appends a segment of this header and the `payload`, piece after piece, and returns its length in bytes. With
    /// `checksum` that field is filled in, otherwise it stays 0.
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

    /// What every header has.
    fn fixed(&self) -> Plain {
        Plain {
            source_port: self.source_port,
            destination_port: self.destination_port,
            sequence_number: self.sequence_number,
            acknowledgment_number: self.acknowledgment_number,
            flags: self.flags,
            window: self.window,
        }
    }

    /// Appends the header and its options, without a checksum.
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
        // Most headers have no options: so many bytes are written without a call.
        out.extend_from_slice(&bytes);
        if length > 0 {
            out.extend_from_slice(&options[..length]);
        }
    }
}

/// Computes the checksum of a segment whose field for it is 0, and puts it there.
fn fill_checksum(segment: &mut [u8], (source, destination): (IpAddr, IpAddr)) {
    let sum = internet_tcp(source, destination, segment);
    segment[CHECKSUM..CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
}

/// A segment as it was received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// The header.
    pub header: Header,
    /// The data, a slice of the datagram.
    pub payload: Bytes,
}

/// Why a datagram is no segment. It is then to be dropped silently and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SegmentError {
    /// It is shorter than a header.
    #[error("{length} bytes are no TCP header")]
    TooShort {
        /// Its length, bytes.
        length: usize,
    },
    /// The data offset lies within the header's fixed part or past the end.
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
    /// An option's length is 0 or 1, or reaches past the header, or is not what its kind demands (RFC 9293 §3.1, MUST-7).
    #[error("option of kind {kind} with an illegal length")]
    BadOption {
        /// The option's kind.
        kind: u8,
    },
}

impl Segment {
    /// Reads `datagram` (the IP payload), sent from `source` to `destination`.
    ///
    /// # Errors
    /// Says why there is no segment. The checksum is judged before anything that it protects.
    pub fn parse(
        datagram: &Bytes,
        addresses: (IpAddr, IpAddr),
        checksum: Checksum,
    ) -> Result<Self, SegmentError> {
        Self::parse_owned(datagram.clone(), addresses, checksum)
    }

    /// The same of a datagram that nobody else needs: its bytes become the payload, without a new reference to them.
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
        let plain = Plain::of(fixed);
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

    /// Sequence numbers it takes: its payload, and one each for SYN and FIN (SEG.LEN).
    pub fn sequence_len(&self) -> u32 {
        let control = |bit| u32::from(self.header.flags.contains(bit));
        self.payload.len() as u32 + control(Flags::SYN) + control(Flags::FIN)
    }
}
